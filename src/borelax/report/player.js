"use strict";
// Players: each .player holds its rollouts as JSON and shows one moment of one of them.
// A rollout of E episodes of H steps has E·(H+1) moments: the start of an episode is one.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 400;

function draw(parent, tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.appendChild(node);
  return node;
}

// null stands for what is not a number.
function fixed(value, digits) {
  return value === null ? "not a number" : value.toFixed(digits).replace("-", "−");
}

function percent(value) {
  if (value === null) return "not a number";
  return value > 0 && value < 0.01 ? "under 1 %" : `${Math.round(100 * value)} %`;
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function shadeOf(byte) {
  return byte === 255 ? null : byte / 254;
}

function known(numbers) {
  return numbers.every((number) => number !== null);
}

function starPath(x, y, radius) {
  const corners = [];
  for (let i = 0; i < 10; i++) {
    const r = i % 2 ? 0.45 * radius : radius;
    const a = (Math.PI * i) / 5;
    corners.push(`${x + r * Math.sin(a)} ${y - r * Math.cos(a)}`);
  }
  return `M${corners.join("L")}Z`;
}

// One drawing of the world: the belief below, paths and goal above.
class World {
  constructor(svg, data) {
    this.data = data;
    this.unit = WIDTH / (data.high[0] - data.low[0]);
    this.height = this.unit * (data.high[1] - data.low[1]);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${this.height}`);
    svg.replaceChildren();
    draw(svg, "rect", { class: "ground", width: WIDTH, height: this.height });
    this.spots = data.kind === "winds" ? [] : this.makeSpots(svg);
    this.drawGuides(svg);
    this.before = draw(svg, "path", { class: "way before" });
    this.disc = draw(svg, "circle", { class: "disc" });
    this.star = draw(svg, "path", { class: "star" });
    this.way = draw(svg, "path", { class: "way" });
    this.agent = draw(svg, "circle", { class: "agent", r: 9 });
  }

  at(place) {
    const { low, high } = this.data;
    return [(place[0] - low[0]) * this.unit, (high[1] - place[1]) * this.unit];
  }

  makeSpots(svg) {
    const { kind, shape } = this.data;
    const [columns, rows] = shape;
    const spots = [];
    if (kind === "ring") {
      for (let k = 0; k < columns; k++) {
        const ends = [k, k + 1].map((i) => {
          const a = (2 * Math.PI * i) / columns;
          return this.at([Math.cos(a), Math.sin(a)]).join(" ");
        });
        const d = `M${ends[0]}A${this.unit} ${this.unit} 0 0 0 ${ends[1]}`;
        spots.push(draw(svg, "path", { class: "open", d, "stroke-opacity": 0 }));
      }
      return spots;
    }
    const width = WIDTH / columns;
    const height = this.height / rows;
    for (let k = 0; k < columns * rows; k++) {
      const x = (k % columns) * width;
      const y = this.height - (Math.floor(k / columns) + 1) * height;
      const box = { x, y, width, height };
      spots.push(draw(svg, "rect", { class: "belief", ...box, "fill-opacity": 0 }));
    }
    return spots;
  }

  drawGuides(svg) {
    const { kind, shape } = this.data;
    if (kind === "cells") {
      for (let i = 1; i < shape[0]; i++) {
        const at = (i * WIDTH) / shape[0];
        const d = `M${at} 0V${this.height}M0 ${at}H${WIDTH}`;
        draw(svg, "path", { class: "rule", d });
      }
    } else if (kind === "plane" || kind === "ring") {
      const [x, y] = this.at([0, 0]);
      const u = this.unit;
      let d = `M${x - u} ${y}A${u} ${u} 0 0 1 ${x + u} ${y}`;
      if (kind === "ring") d += `A${u} ${u} 0 0 1 ${x - u} ${y}`;
      draw(svg, "path", { class: "guide", d });
    }
  }

  showBelief(shades) {
    const name = this.data.kind === "ring" ? "stroke-opacity" : "fill-opacity";
    this.spots.forEach((spot, k) => spot.setAttribute(name, shadeOf(shades[k]) || 0));
  }

  showGoal(goal) {
    const { kind, radius, fixed: everywhere } = this.data;
    const [x, y] = this.at(everywhere || goal);
    const round = kind === "plane" || kind === "winds" ? radius * this.unit : 0;
    for (const [name, value] of [["cx", x], ["cy", y], ["r", round]]) {
      this.disc.setAttribute(name, value);
    }
    this.star.setAttribute("d", starPath(x, y, 14));
  }

  showWay(episodes, episode, step) {
    const line = (places) => places.map((place, i) => {
      if (!known(place)) return ""; // a gap
      return (i && known(places[i - 1]) ? "L" : "M") + this.at(place).join(" ");
    }).join("");
    const past = episodes.slice(0, episode).map(line).join("");
    this.before.setAttribute("d", past || "M0 0");
    const places = episodes[episode].slice(0, step + 1);
    this.way.setAttribute("d", line(places) || "M0 0");
    const last = places[places.length - 1];
    const [x, y] = known(last) ? this.at(last) : [-50, -50];
    this.agent.setAttribute("cx", x);
    this.agent.setAttribute("cy", y);
  }
}

// The wind as a point: what is true, and what is believed.
class WindRose {
  constructor(svg, data) {
    const winds = [...data.goals, ...(data.learned || []).flat(2)];
    this.reach = 1.25 * Math.max(...winds.flat().map(Math.abs), 1e-6); // |null| is 0
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${WIDTH}`);
    svg.replaceChildren();
    draw(svg, "rect", { class: "ground", width: WIDTH, height: WIDTH });
    const half = WIDTH / 2;
    draw(svg, "path", { class: "rule", d: `M${half} 0V${WIDTH}M0 ${half}H${WIDTH}` });
    this.star = draw(svg, "path", { class: "star" });
    this.dot = draw(svg, "circle", { class: "agent", r: 9 });
  }

  show(truth, believed) {
    const at = (w) => w.map((v, i) => (WIDTH / 2) * (1 + ((i ? -1 : 1) * v) / this.reach));
    this.star.setAttribute("d", starPath(...at(truth), 14));
    const [x, y] = believed && known(believed) ? at(believed) : [-50, -50];
    this.dot.setAttribute("cx", x);
    this.dot.setAttribute("cy", y);
  }
}

class Player {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script").textContent);
    const rewards = this.data.reward;
    this.horizon = rewards[0][0][0].length;
    this.moments = rewards[0][0].length * (this.horizon + 1);
    this.find = (name) => root.querySelector(`.${name}`);
    this.slider = this.find("time");
    this.slider.max = this.moments - 1;
    this.fill(this.find("task"), this.data.labels, this.data.tasks, this.data.task);
    const seeds = rewards.map((_, i) => i);
    this.fill(this.find("seed"), seeds.map((i) => `${i + 1}`), seeds, 0);
    const second = this.find("second");
    const winds = this.data.kind === "winds";
    this.worlds = [new World(this.find("first"), this.data)];
    this.rose = winds && second ? new WindRose(second, this.data) : null;
    if (second && !winds) this.worlds.push(new World(second, this.data));
    this.maps = [this.data.learned, this.data.exact].filter((m) => m && !winds);
    this.listen();
    this.choose();
  }

  fill(select, names, values, chosen) {
    names.forEach((name, i) => select.add(new Option(name, values[i])));
    select.value = chosen;
    select.closest("label").hidden = names.length < 2;
  }

  listen() {
    for (const name of ["task", "seed"]) {
      this.find(name).addEventListener("change", () => {
        this.choose();
        this.lead((other) => other.take(name, this.find(name).value));
      });
    }
    this.slider.addEventListener("input", () => this.go(this.moment()));
    this.find("back").addEventListener("click", () => this.go(this.moment() - 1));
    this.find("next").addEventListener("click", () => this.go(this.moment() + 1));
    this.find("play").addEventListener("click", () => this.play(!this.timer));
    this.find("rewards").addEventListener("click", (event) => {
      const box = this.find("rewards").getBoundingClientRect();
      this.go(Math.floor((this.moments * (event.clientX - box.left)) / box.width));
    });
  }

  moment() {
    return Number(this.slider.value);
  }

  go(moment) {
    this.slider.value = Math.max(0, Math.min(this.moments - 1, moment));
    this.show();
    this.lead((other) => other.follow(this.moment()));
  }

  follow(moment) {
    this.slider.value = moment;
    this.show();
  }

  lead(tell) {
    if (this.together && this.together.checked) this.others.forEach(tell);
  }

  play(on) {
    clearInterval(this.timer);
    this.timer = null;
    const button = this.find("play");
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", on);
    this.find("readout").setAttribute("aria-live", on ? "off" : "polite");
    if (!on) return;
    if (this.moment() >= this.moments - 1) this.go(0);
    const pause = this.horizon > 30 ? 90 : 250;
    this.timer = setInterval(() => {
      if (this.moment() >= this.moments - 1) this.play(false);
      else this.go(this.moment() + 1);
    }, pause);
  }

  take(name, value) {
    const select = this.find(name);
    if (![...select.options].some((option) => option.value === value)) return;
    select.value = value;
    this.choose();
  }

  choose() {
    this.seed = this.find("seed").selectedIndex;
    this.task = this.find("task").selectedIndex;
    this.rewards = this.data.reward[this.seed][this.task];
    this.places = this.data.place[this.seed][this.task];
    this.shades = this.maps.map((map) => bytesOf(map[this.seed][this.task]));
    this.worlds.forEach((world) => world.showGoal(this.data.goals[this.task]));
    this.drawRewards();
    this.show();
  }

  drawRewards() {
    const strip = this.find("rewards");
    strip.replaceChildren();
    const all = this.rewards.flat();
    const low = Math.min(0, ...all);
    const span = Math.max(0, ...all) - low || 1;
    const y = (value) => 56 - (50 * (value - low)) / span;
    const wide = 600 / this.moments;
    draw(strip, "line", { class: "axis", x1: 0, x2: 600, y1: y(0), y2: y(0) });
    this.rewards.forEach((episode, e) => {
      const start = e * (this.horizon + 1);
      if (e) draw(strip, "line", { class: "edge", x1: start * wide, x2: start * wide, y1: 0, y2: 58 });
      const words = draw(strip, "text", { class: "tick", x: start * wide + 4, y: 75 });
      words.textContent = `episode ${e + 1}`;
      episode.forEach((reward, s) => {
        if (reward === null) return; // a gap
        const [top, bottom] = [y(Math.max(0, reward)), y(Math.min(0, reward))];
        const x = (start + s + 1) * wide;
        const height = Math.max(bottom - top, 0.8);
        draw(strip, "rect", { class: `bar ${["c1", "c6", "c2"][Math.sign(reward) + 1]}`, x, y: top, width: wide * 0.8, height });
      });
    });
    this.cursor = draw(strip, "rect", { class: "cursor", y: 0, width: Math.max(wide, 2), height: 58 });
  }

  show() {
    const moment = this.moment();
    const episode = Math.floor(moment / (this.horizon + 1));
    const step = moment % (this.horizon + 1);
    const steps = episode * this.horizon + step;
    const time = Math.floor(steps / this.data.every); // of the latest belief there is
    this.worlds.forEach((world, i) => {
      if (this.shades[i]) world.showBelief(this.shadesAt(i, time));
      world.showWay(this.places, episode, step);
    });
    const believed = this.data.kind === "winds" && this.data.learned
      ? this.data.learned[this.seed][this.task][time] : null;
    if (this.rose) this.rose.show(this.data.goals[this.task], believed);
    this.cursor.setAttribute("x", (moment * 600) / this.moments);
    const when = `Episode ${episode + 1} of ${this.rewards.length}, step ${step} of ${this.horizon}`;
    this.slider.setAttribute("aria-valuetext", when);
    const late = steps % this.data.every;
    const says = this.says(time, believed) + (late ? ` (The belief of ${late} steps ago.)` : "");
    this.find("readout").textContent = `${when}. ${this.paid(episode, step)} ${says}`;
    for (const svg of this.root.querySelectorAll(".world")) {
      svg.setAttribute("aria-label", `${when}: the agent's path and its belief. ${says}`);
    }
  }

  shadesAt(i, time) {
    const count = this.worlds[i].spots.length;
    return this.shades[i].subarray(time * count, (time + 1) * count);
  }

  paid(episode, step) {
    const before = this.rewards.slice(0, episode).flat();
    const paid = [...before, ...this.rewards[episode].slice(0, step)];
    const total = known(paid) ? paid.reduce((a, b) => a + b, 0) : null;
    const sum = `eturn so far ${fixed(total, 1)}.`;
    return step ? `Reward ${fixed(this.rewards[episode][step - 1], 2)}; r${sum}` : `R${sum}`;
  }

  says(time, believed) {
    const goal = this.data.goals[this.task];
    if (this.data.kind === "winds") {
      const words = (w) => `(${w.map((v) => fixed(v, 3)).join(", ")})`;
      return believed ? `Believed wind ${words(believed)}, true wind ${words(goal)}.` : "";
    }
    const spot = this.spotOf(goal);
    const value = (i) => {
      const shade = shadeOf(this.shadesAt(i, time)[spot]);
      return shade !== null && this.data.kind === "cells" ? shade * shade : shade;
    };
    const names = [this.data.learned && "learned belief", this.data.exact && "exact posterior"];
    const parts = names.filter(Boolean).slice(0, this.worlds.length)
      .map((name, i) => `${name} ${this.data.kind === "plane" ? fixed(value(i), 2) : percent(value(i))}`);
    const where = { cells: "Chance of the true goal", plane: "Reward expected at the true goal", ring: "How far through the true door a step is expected to lead" };
    return parts.length ? `${where[this.data.kind]}: ${parts.join(", ")}.` : "";
  }

  spotOf(place) {
    const { kind, shape, low, high } = this.data;
    if (kind === "ring") {
      const turn = (Math.atan2(place[1], place[0]) / (2 * Math.PI) + 1) % 1;
      return Math.floor(turn * shape[0]) % shape[0];
    }
    const [x, y] = place.map((v, i) => Math.floor(((v - low[i]) / (high[i] - low[i])) * shape[i]));
    return x + shape[0] * y;
  }
}

// Several players on a page move together while the box .together is ticked.
function start() {
  const players = [...document.querySelectorAll(".player")].map((root) => new Player(root));
  for (const player of players) {
    player.together = document.querySelector(".together");
    player.others = players.filter((other) => other !== player);
  }
}

start();
