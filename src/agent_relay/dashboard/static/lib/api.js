// Requests to the daemon. Addresses are relative to the page, so that it works behind any path prefix.
//
// Where a token is set, it is asked for once and kept in this tab's sessionStorage; it goes into a header and never into an address.

import { signal } from "./ui.js";

const TOKEN_KEY = "agent-relay.token";

/** What the page should ask for: null, or { wrong: boolean, resolve }. The shell shows a dialog while it is set. */
export const tokenWanted = signal(null);

let asking = null;

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem?.message ?? (status ? `The daemon answered with status ${status}.` : "The daemon does not answer."));
    this.name = "ApiError";
    this.status = status; // 0: no answer at all
    this.code = problem?.code ?? null;
    this.details = problem?.details ?? {};
    this.retryable = problem?.retryable ?? status === 0;
  }
}

/** The address of an API path, `url("messages", { limit: 50 })`. Parameters that are null or undefined are left out. */
export function url(path, query = {}) {
  const address = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, String(value));
  }
  return address;
}

/** A part of a path: names may hold any sign. */
export const part = encodeURIComponent;

/** The JSON of a GET; raises ApiError. */
export const get = (path, query, options) => json("GET", url(path, query), undefined, options);

/** The JSON of a POST; raises ApiError. */
export const post = (path, body = {}, options) => json("POST", url(path), body, options);

/** The JSON of a DELETE; raises ApiError. */
export const remove = (path, options) => json("DELETE", url(path), undefined, options);

async function json(method, address, body, options = {}) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await open(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), ...options });
  return response.json();
}

/** A fetch with the token; asks for it (again) on 401. Raises ApiError for anything but success, AbortError when aborted. */
export async function open(address, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(address, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, null);
    }
    if (response.ok) return response;
    if (response.status !== 401) throw new ApiError(response.status, await problemOf(response));
    await askForToken(token);
  }
}

async function problemOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return null;
  }
}

async function askForToken(tried) {
  const now = sessionStorage.getItem(TOKEN_KEY);
  if (now !== tried) return; // another request has asked meanwhile
  asking ??= new Promise((resolve) => {
    tokenWanted.value = { wrong: Boolean(tried), resolve };
  }).then((token) => {
    sessionStorage.setItem(TOKEN_KEY, token);
    tokenWanted.value = null;
    asking = null;
  });
  await asking;
}
