// Leaving out of a text what should not be passed on: keys, addresses, folders of people, and words that somebody names.

export const HIDDEN = "▇▇▇";

const PATTERNS = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abpr]|AKIA|ASIA|AIza|ya29|npm|pypi|hf)[-_]?[A-Za-z0-9_.-]{12,}/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?/g, // a JSON web token
  /\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b/g,
  /\b(?:\d{1,3}\.){3}\d{1,3}\b/g,
  /\b[A-Fa-f0-9]{32,}\b/g,
];
/** The name before it stays: that there was a password may be said. */
const ASSIGNED = /((?:pass(?:word|wd)?|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*(?:Bearer\s+)?["']?)[^\s"',;]+/gi;
const IN_ADDRESS = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi; // user and password
const HOMES = /(\/(?:home|Users)\/)[^/\s"'`]+/g;

/** `words` are hidden wherever they stand, in any case of letters. */
export function redact(text, { secrets = true, words = [] } = {}) {
  let result = text;
  if (secrets) {
    result = result.replace(IN_ADDRESS, `$1${HIDDEN}@`).replace(ASSIGNED, `$1${HIDDEN}`).replace(HOMES, `$1${HIDDEN}`);
    for (const pattern of PATTERNS) result = result.replace(pattern, HIDDEN);
  }
  for (const word of words.filter(Boolean)) result = result.replace(new RegExp(word.replace(/[^\p{L}\p{N}]/gu, "\\$&"), "giu"), HIDDEN);
  return result;
}
