import { describe, expect, it } from "@jest/globals";
import { clockSkewMs, createStreamTokens, tokenLifetimeMs } from "../../src/ofrep/stream-tokens.ts";
import { apiKey } from "../builders.ts";

const secret = "a secret for the tests that all edges share";
const tokens = createStreamTokens(secret);
const hourMs = 60 * 60 * 1_000;
const hour = 500_000;
const beginMs = hour * hourMs;
const keyId = apiKey().keyId;
const tokenIn = (offer: string) => /token=([^"]*)/.exec(offer)?.[1] ?? "";

describe("given a token of an hour", () => {
  const token = tokenIn(tokens.offer(keyId, beginMs + 1_234_567));

  it("names its key and its hour, and fits into a URL as it is", () => {
    expect(token.startsWith(`${keyId}.${hour}.`)).toBe(true);
    expect(encodeURIComponent(token)).toBe(token);
  });

  it("is the same on every edge with the secret, for the whole hour", () => {
    const edgeIsStopping = createStreamTokens(secret);
    expect(tokenIn(edgeIsStopping.offer(keyId, beginMs))).toBe(token);
    expect(tokenIn(edgeIsStopping.offer(keyId, beginMs + hourMs - 1))).toBe(token);
    expect(tokenIn(edgeIsStopping.offer(keyId, beginMs + hourMs))).not.toBe(token);
  });

  it("is another one for another key, and for another secret", () => {
    expect(tokenIn(tokens.offer(apiKey().keyId, beginMs))).not.toBe(token);
    expect(tokenIn(createStreamTokens(`${secret}!`).offer(keyId, beginMs))).not.toBe(token);
  });

  it.each([
    ["at its beginning", beginMs],
    ["a little before, by a clock that is behind", beginMs - clockSkewMs],
    ["a moment before it ends", beginMs + tokenLifetimeMs - 1],
  ])("counts %s", (_when, nowMs) => {
    expect(tokens.keyIdOf(token, nowMs)).toBe(keyId);
  });

  it.each([
    ["when a day has passed", beginMs + tokenLifetimeMs],
    ["long before its hour", beginMs - clockSkewMs - 1],
  ])("does not count %s", (_when, nowMs) => {
    expect(tokens.keyIdOf(token, nowMs)).toBeUndefined();
  });

  it("does not count with another secret", () => {
    expect(createStreamTokens(`${secret}!`).keyIdOf(token, beginMs)).toBeUndefined();
  });

  it.each([
    ["of another key", token.replace(keyId, apiKey().keyId)],
    ["of a later hour", token.replace(`.${hour}.`, `.${hour + 1}.`)],
    ["with a zero before the hour", token.replace(`.${hour}.`, `.0${hour}.`)],
    ["with another first character", flipped(token, token.lastIndexOf(".") + 1)],
    ["with another last character", flipped(token, token.length - 1)],
    ["without its end", token.slice(0, -1)],
    ["with something after it", `${token}A`],
    ["without a signature", `${keyId}.${hour}.`],
    ["that is an API key", apiKey().text],
    ["that is empty", ""],
  ])("does not count %s", (_what, forged) => {
    expect(tokens.keyIdOf(forged, beginMs)).toBeUndefined();
  });
});

/**
 * The last character stands for six bits of which two are not used, so three other ones stand for the
 * same bytes; the character after it in the alphabet is one of them.
 */
function flipped(text: string, index: number): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const place = alphabet.indexOf(text[index] as string);
  return text.slice(0, index) + alphabet[place ^ 1] + text.slice(index + 1);
}
