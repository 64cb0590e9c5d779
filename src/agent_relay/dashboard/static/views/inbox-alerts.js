// Telling a person who looks elsewhere: the title counts what waits; a sound and a notification, where they were asked for.

import { html, signal } from "../lib/ui.js";
import { onArrivals } from "../lib/arrivals.js";
import { describeItem } from "../lib/inbox-words.js";
import { go, link } from "../lib/router.js";
import { say } from "../lib/toasts.js";
import { Menu } from "../parts/menu.js";

const KEY = "agent-relay.alerts";
const NOTES_HZ = [660, 880];

/** { sound, notify }: what this browser was asked to do. */
export const alerts = signal(read());

onArrivals(tell);

export function AlertMenu() {
  const { sound, notify } = alerts.value;
  return html`<${Menu} label="Alerts: sound and notifications" icon="bell" small items=${[
    { label: sound ? "Sound is on" : "Play a sound", icon: sound ? "check" : "minus", run: () => change({ sound: !sound }) },
    {
      label: notify ? "Notifications are on" : "Show notifications", icon: notify ? "check" : "minus",
      run: () => (notify ? change({ notify: false }) : askToNotify()),
    },
  ]}><span class="alerts-word">Alerts</span><//>`;
}

function tell(fresh) {
  const { sound, notify } = alerts.value;
  if (sound) play();
  if (notify && document.hidden && Notification.permission === "granted") fresh.forEach(show);
}

function show(item) {
  const { title, text } = describeItem(item);
  const notice = new Notification(title, { body: text, tag: item.id });
  notice.onclick = () => {
    focus();
    go(link("inbox"));
    notice.close();
  };
}

/** Two short notes, made here: no file is needed, and none is loaded. Browsers let no page sound that nobody has touched yet. */
function play() {
  if (!navigator.userActivation.hasBeenActive) return;
  const context = new AudioContext();
  NOTES_HZ.forEach((frequency, index) => {
    const note = new OscillatorNode(context, { frequency });
    const at = context.currentTime + index * 0.14;
    const volume = new GainNode(context, { gain: 0 });
    volume.gain.setTargetAtTime(0.12, at, 0.01);
    volume.gain.setTargetAtTime(0, at + 0.1, 0.05);
    note.connect(volume).connect(context.destination);
    note.start(at);
    note.stop(at + 0.5);
  });
  setTimeout(() => context.close(), 1_500);
}

async function askToNotify() {
  if (!("Notification" in window)) return say("This browser does not support notifications.", { tone: "warning" });
  const answer = await Notification.requestPermission();
  if (answer !== "granted") return say("The browser blocks notifications from this page.", { tone: "warning" });
  return change({ notify: true });
}

function change(part) {
  alerts.value = { ...alerts.value, ...part };
  localStorage.setItem(KEY, JSON.stringify(alerts.value));
  if (part.sound) play();
}

function read() {
  try {
    return { sound: false, notify: false, ...JSON.parse(localStorage.getItem(KEY)) };
  } catch {
    return { sound: false, notify: false };
  }
}
