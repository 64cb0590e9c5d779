// What the timeline shows as a picture: names, lanes, and the time it is of.

import { showMoment } from "../lib/format.js";
import { save } from "../lib/saving.js";
import { say } from "../lib/toasts.js";
import { token } from "../lib/theme.js";
import { showName } from "../conversations/place.js";
import { AXIS, laneHeight } from "./timeline-lanes.js";

const NAMES_PX = 170;
const HEAD_PX = 40;

export async function saveImage({ from, to }, lanes) {
  const canvas = document.querySelector("canvas[data-timeline]");
  if (!canvas) return;
  const ratio = canvas.width / canvas.clientWidth;
  const scroll = document.querySelector(".tl-labels").scrollTop;
  const image = Object.assign(document.createElement("canvas"), { width: canvas.width + NAMES_PX * ratio, height: canvas.height + HEAD_PX * ratio });
  const context = image.getContext("2d");
  context.fillStyle = token("--surface");
  context.fillRect(0, 0, image.width, image.height);
  context.drawImage(canvas, NAMES_PX * ratio, HEAD_PX * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = token("--text");
  context.font = `13px ${token("--font")}`;
  context.textBaseline = "middle";
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  context.fillText(`${showMoment(from)} – ${showMoment(to)} (${timeZone})`, 12, HEAD_PX / 2);
  const tall = laneHeight(canvas.clientHeight, lanes.length);
  context.beginPath();
  context.rect(0, HEAD_PX + AXIS, NAMES_PX, canvas.clientHeight - AXIS);
  context.clip();
  lanes.forEach((name, at) => context.fillText(name ? showName(name) : "The relay", 12, HEAD_PX + AXIS + (at + 0.5) * tall - scroll, NAMES_PX - 20));
  const blob = await new Promise((resolve) => { image.toBlob(resolve, "image/png"); });
  save(`timeline-${new Date(from).toISOString().slice(0, 16).replace(/[:T]/g, "-")}.png`, blob);
  say("The picture is saved.", { tone: "success" });
}
