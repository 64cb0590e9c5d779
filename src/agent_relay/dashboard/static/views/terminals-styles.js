// Styles that the terminal library makes while it runs. The page's policy allows none but those it knows: style elements carry the word that the
// server gave this page, and the colours of letters are set as properties, which is allowed, and not as attributes, which is not.

const nonce = document.querySelector("meta[name=style-nonce]")?.content ?? "";

/** Puts the terminal into the page. */
export function openTerminal(terminal, place) {
  const makeElement = Document.prototype.createElement;
  document.createElement = (...given) => {
    const element = makeElement.apply(document, given);
    if (element.localName === "style") element.nonce = nonce;
    return element;
  };
  try {
    terminal.open(place);
  } finally {
    delete document.createElement; // the prototype's shows again
  }
  setColoursAsProperties(terminal);
}

function setColoursAsProperties(terminal) {
  const makesRows = terminal._core._renderService._renderer.value._rowFactory;
  makesRows._addStyle = (element, style) => { element.style.cssText += style; };
}
