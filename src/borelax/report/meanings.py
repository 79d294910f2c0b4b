"""What the report's numbers mean, in words; ``docs/metrics.md`` says it at length."""

METRICS = {
    "collect/return": "return per rollout of the agents while they learn and explore, "
    "mean over tasks",
    "collect/td_error": "squared error of the values the agents learn, mean over tasks",
    "collect/q_mean": "mean value the agents give to what they did",
    "collect/entropy": "randomness of the agents' actions, in nats",
    "belief/loss": "what training minimises: minus the ELBO per rollout",
    "belief/reward_nll": "how badly the belief predicts a step, in nats",
    "belief/kl": "how much the belief moves along a rollout",
    "meta/td_error": "squared error of the meta-agent's values",
    "meta/q_mean": "mean value the meta-agent gives to what the logs hold",
    "meta/entropy": "randomness of the meta-agent's actions, in nats",
}

PHASES = {
    "collect": "1 · Collect: one agent per task makes the logs",
    "relabel": "2 · Relabel: logs are made to say what other tasks would have paid",
    "belief": "3 · Belief: learn to infer the task",
    "meta": "4 · Meta-agent: learn to act on what is believed",
    "evaluate": "5 · Evaluate: held-out tasks",
}

UNITS = {"collect": "iterations", "belief": "updates", "meta": "updates"}

DOMAINS = {
    "gridworld": "Gridworld: find the one rewarding cell of a grid",
    "semicircle": "Semi-circle: find a hidden goal on a half circle",
    "wind": "Wind: reach a place against an unknown wind",
    "wind-hard": "Wind, hard: hold a small place against an unknown wind",
    "escape-room": "Escape-Room: find the hidden door of a round room",
    "half-cheetah-vel": "Half-Cheetah-Vel: run at an unknown target speed",
    "ant-semicircle": "Ant-Semi-circle: walk to a hidden goal on a half circle",
}

RELABELLINGS = {
    "rewards": "rewards relabelled",
    "policies": "policies replayed",
    "none": "raw logs, not relabelled",
}
