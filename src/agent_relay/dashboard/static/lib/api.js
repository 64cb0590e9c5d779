// Requests to the daemon. Addresses are relative to the page, so that it works behind any path prefix.
//
// The browser is known by a key of two halves: a cookie, which no script can read, and what `key.js` keeps for this very port.

import { askForKey, keyHeaders } from "./key.js";

const RETRY_DELAYS_MS = [300, 1500]; // then a person decides

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem?.message ?? (status ? `The daemon responded with status ${status}.` : "The daemon does not respond."));
    this.name = "ApiError";
    this.status = status; // 0: no answer at all
    this.code = problem?.code ?? null;
    this.details = problem?.details ?? {};
    this.retryable = problem?.retryable ?? status === 0;
    this.isAway = status === 0 || this.code === "SERVICE_UNAVAILABLE"; // the stream shows it, and everything is read again afterwards
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

/** A name for something that is to be done once; the daemon knows what is said again by it. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A POST with an `id`: said again where the connection was lost, which does nothing twice. Raises ApiError. */
export async function postOnce(path, body) {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await post(path, body);
    } catch (error) {
      if (error.status !== 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  return post(path, body);
}

/** The JSON of a DELETE; raises ApiError. */
export const remove = (path, options) => json("DELETE", url(path), undefined, options);

async function json(method, address, body, options = {}) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await open(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), ...options });
  return response.json();
}

/** A fetch as a browser that was let in; asks to be let in on 401. Raises ApiError for anything but success, AbortError when aborted. */
export async function open(address, options = {}) {
  for (;;) {
    const shown = await keyHeaders();
    const headers = { ...options.headers, ...shown };
    let response;
    try {
      response = await fetch(address, { ...options, headers, cache: "no-store", credentials: "same-origin", redirect: "error" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, null);
    }
    if (response.ok) return response;
    if (response.status !== 401) throw new ApiError(response.status, await problemOf(response));
    await askForKey(shown);
  }
}

async function problemOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return null;
  }
}
