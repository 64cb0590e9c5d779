// The icon in the tab has a dot while something needs a person.

const link = document.querySelector("link[rel=icon]");
const plain = link.href;
const DOT = '<circle cx="25" cy="7" r="7" fill="#e39310" stroke="#fff" stroke-width="2"/>';
let dotted = null;

export async function showDot(isOn) {
  if (!isOn) {
    link.href = plain;
    return;
  }
  dotted ??= fetch(plain).then((answer) => answer.text()).then((svg) => `data:image/svg+xml,${encodeURIComponent(svg.replace("</svg>", `${DOT}</svg>`))}`);
  try {
    const address = await dotted;
    link.href = address;
  } catch {
    dotted = null; // the daemon is away; the title counts all the same
  }
}
