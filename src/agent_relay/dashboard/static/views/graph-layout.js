// Where the nodes of the graph stand. Nothing jumps: whoever is there stays about where it was, and who comes is put beside those it talks with.
//
// Places are between -1 and 1 in both directions. Nodes push each other away, edges pull their ends together, and all are drawn to the middle.

const FIRST_TURNS = 400;
const LATER_TURNS = 120;
const SLOW = 0.01;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const PULL = 0.22;
const PUSH = 0.11;
const TO_MIDDLE = 0.035;
const FILLED = 0.94; // of the picture, by the first arrangement
const EDGE = 1.02;

export class Layout {
  places = new Map(); // id → { x, y, isHeld }

  /** `ids` of all nodes, `edges` as [{ from, to, weight }] with weights up to 1. Returns whether anything has moved. */
  arrange(ids, edges) {
    const isFirst = this.places.size === 0;
    const known = new Set(ids);
    const gone = [...this.places.keys()].filter((id) => !known.has(id));
    const fresh = ids.filter((id) => !this.places.has(id));
    gone.forEach((id) => this.places.delete(id));
    if (!gone.length && !fresh.length) return false;
    fresh.forEach((id, number) => this.places.set(id, this.#beside(id, edges) ?? onSpiral(number, fresh.length)));
    this.#relax(edges, isFirst ? FIRST_TURNS : LATER_TURNS, isFirst ? new Set() : new Set(ids.filter((id) => !fresh.includes(id))));
    if (isFirst) this.#fill();
    return true;
  }

  /** A person has put it there; it stays. */
  hold(id, x, y) {
    this.places.set(id, { x: clamp(x), y: clamp(y), isHeld: true });
  }

  /** Stretches everything over the whole picture. */
  #fill() {
    const nodes = [...this.places.values()];
    for (const name of ["x", "y"]) {
      const [least, most] = [Math.min(...nodes.map((each) => each[name])), Math.max(...nodes.map((each) => each[name]))];
      nodes.forEach((each) => { each[name] = most - least < 1e-6 ? 0 : ((each[name] - least) / (most - least)) * 2 * FILLED - FILLED; });
    }
  }

  #beside(id, edges) {
    const others = edges.flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : []));
    const near = others.map((other) => this.places.get(other)).filter(Boolean);
    if (!near.length) return null;
    const angle = this.places.size * GOLDEN;
    return { x: mean(near, "x") + 0.2 * Math.cos(angle), y: mean(near, "y") + 0.2 * Math.sin(angle), isHeld: false };
  }

  /** `slow` give way a little to the others, and hardly move by themselves. */
  #relax(edges, turns, slow) {
    const ids = [...this.places.keys()];
    const nodes = ids.map((id) => this.places.get(id));
    const at = new Map(ids.map((id, place) => [id, place]));
    const links = edges.filter(({ from, to }) => at.has(from) && at.has(to)).map(({ from, to, weight }) => [at.get(from), at.get(to), weight]);
    const degrees = nodes.map(() => 0);
    for (const [one, other] of links) [one, other].forEach((place) => { degrees[place] += 1; });
    const apart = 1.25 / Math.sqrt(nodes.length); // the distance nodes would like to have
    for (let turn = 0; turn < turns; turn++) {
      const heat = 0.12 * (1 - turn / turns);
      const moves = push(nodes, apart);
      for (const [one, other, weight] of links) pull(nodes, moves, one, other, (0.3 + weight) / Math.min(degrees[one], degrees[other]), apart);
      nodes.forEach((node, place) => {
        if (node.isHeld) return;
        const dx = moves[place].x - node.x * TO_MIDDLE;
        const dy = moves[place].y - node.y * TO_MIDDLE;
        const length = Math.hypot(dx, dy) || 1;
        const by = (Math.min(length, heat) / length) * (slow.has(ids[place]) ? SLOW : 1);
        node.x = clamp(node.x + dx * by);
        node.y = clamp(node.y + dy * by);
      });
    }
  }
}

function push(nodes, apart) {
  const moves = nodes.map(() => ({ x: 0, y: 0 }));
  for (let one = 0; one < nodes.length; one++) {
    for (let other = one + 1; other < nodes.length; other++) {
      const dx = nodes[one].x - nodes[other].x || 1e-4 * (one + 1);
      const dy = nodes[one].y - nodes[other].y || 1e-4 * (other + 1);
      const square = dx * dx + dy * dy;
      const force = Math.min(0.5, (PUSH * apart * apart) / square);
      moves[one].x += dx * force;
      moves[one].y += dy * force;
      moves[other].x -= dx * force;
      moves[other].y -= dy * force;
    }
  }
  return moves;
}

/** Where everybody talks with everybody each edge pulls a little only, so that nobody is drawn into one heap. */
function pull(nodes, moves, one, other, strength, apart) {
  const dx = nodes[other].x - nodes[one].x;
  const dy = nodes[other].y - nodes[one].y;
  const distance = Math.hypot(dx, dy) || 1e-4;
  const force = (PULL * strength * (distance - apart)) / distance;
  moves[one].x += dx * force;
  moves[one].y += dy * force;
  moves[other].x -= dx * force;
  moves[other].y -= dy * force;
}

function onSpiral(number, count) {
  const far = 0.75 * Math.sqrt((number + 0.5) / count);
  return { x: far * Math.cos(number * GOLDEN), y: far * Math.sin(number * GOLDEN), isHeld: false };
}

const mean = (places, name) => places.reduce((sum, each) => sum + each[name], 0) / places.length;
const clamp = (value) => Math.max(-EDGE, Math.min(EDGE, value));
