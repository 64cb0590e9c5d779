// A message on its way: a dot along an edge, or a line that lights up for whoever wants no motion.

const SVG = "http://www.w3.org/2000/svg";
const TRAVEL_MS = 900;
const LIT_MS = 1_200;
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** `group` is where it is drawn, `from` and `to` are places; `arrived` is called at its end. */
export function sendPulse(group, from, to, arrived = () => {}) {
  if (!group || !from || !to) return;
  const [shape, motion, ms] = still.matches ? lit(from, to) : dot(from, to);
  group.append(shape);
  shape.animate(motion, { duration: ms, easing: "cubic-bezier(0.4, 0, 0.3, 1)" }).finished.then(() => {
    shape.remove();
    arrived();
  }, () => shape.remove());
}

function dot(from, to) {
  const shape = document.createElementNS(SVG, "circle");
  shape.setAttribute("class", "gr-pulse");
  shape.setAttribute("r", "4.5");
  const at = ({ x, y }) => `translate(${x}px, ${y}px)`;
  const motion = [{ transform: at(from), opacity: 0 }, { opacity: 1, offset: 0.15 }, { opacity: 1, offset: 0.85 }, { transform: at(to), opacity: 0 }];
  return [shape, motion, TRAVEL_MS];
}

function lit(from, to) {
  const shape = document.createElementNS(SVG, "line");
  shape.setAttribute("class", "gr-lit");
  Object.entries({ x1: from.x, y1: from.y, x2: to.x, y2: to.y }).forEach(([name, value]) => shape.setAttribute(name, value));
  return [shape, [{ opacity: 0.8 }, { opacity: 0.8, offset: 0.6 }, { opacity: 0 }], LIT_MS];
}
