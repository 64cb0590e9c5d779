// Text that lies, made to tell the truth: what cannot be seen, or only looks like something else, becomes a token such as ⟨U+202E⟩.
// For wherever a person decides; never for messages. The same as protocol/visible_text.py: one table of examples checks both.

const unseen = String.raw`\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680`
  + String.raw`\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f`
  + String.raw`\ufeff\uffa0\ufff0-\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}`
  + String.raw`\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}`;
const disguised = String.raw`\u0131\u0251\u0261\u0269\u01c0\u01c3\u2024\u2044\u2160-\u217f\u2215\u2236\u29f8\ua789\uff01-\uff5e\u{1d400}-\u{1d7ff}`;
const latin = String.raw`A-Za-z\u00c0-\u024f\u1e00-\u1eff`;
const foreign = String.raw`\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13ff`
  + String.raw`\u1c80-\u1c8f\u1f00-\u1fff\u2c80-\u2cff\ua640-\ua69f\uab70-\uabbf`;
const lookAlikes = new Set("АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝѵ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανικορτυχϲϳ");

const odd = new RegExp(`[${unseen}${disguised}]`, "gu");
const anyForeign = new RegExp(`[${foreign}]`, "gu");
const anyLatin = new RegExp(`[${latin}]`, "u");
const word = new RegExp(`[${latin}${foreign}0-9_]+`, "gu");
const token = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** The text with a token for each character that lies; line breaks and tabs stay. What is no text stays what it is. */
export function reveal(text) {
  if (typeof text !== "string") return text;
  const found = text.match(anyForeign);
  if (found) {
    const isPosing = found.every((character) => lookAlikes.has(character)) && anyLatin.test(text);
    text = text.replace(word, (each) => (isPosing || anyLatin.test(each) ? each.replace(anyForeign, token) : each));
  }
  return text.replace(odd, token);
}
