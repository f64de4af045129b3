import { describe, expect, it } from "@jest/globals";
import {
  clockSkewMs,
  createStreamTokens,
  tokenLifetimeMs,
} from "../../../src/http/ofrep/stream-tokens.ts";
import { apiKey } from "../../builders.ts";

const secret = "a secret for the tests that all edges share";
const tokens = createStreamTokens(secret);
const hourMs = 60 * 60 * 1_000;
const hour = 500_000;
const beginMs = hour * hourMs;
const keyId = apiKey().keyId;
const tokenIn = (offer: string) => /token=([^"]*)/.exec(offer)?.[1] ?? "";

describe("given a token of an hour", () => {
  const token = tokenIn(tokens.offer(keyId, beginMs + 1_234_567));

  it("contains its key id and its hour, and needs no encoding in a URL", () => {
    expect(token.startsWith(`${keyId}.${hour}.`)).toBe(true);
    expect(encodeURIComponent(token)).toBe(token);
  });

  it("is the same on every edge with the same secret, for the whole hour", () => {
    const peerEdgeTokens = createStreamTokens(secret);
    expect(tokenIn(peerEdgeTokens.offer(keyId, beginMs))).toBe(token);
    expect(tokenIn(peerEdgeTokens.offer(keyId, beginMs + hourMs - 1))).toBe(token);
    expect(tokenIn(peerEdgeTokens.offer(keyId, beginMs + hourMs))).not.toBe(token);
  });

  it("differs for another key, and for another secret", () => {
    expect(tokenIn(tokens.offer(apiKey().keyId, beginMs))).not.toBe(token);
    expect(tokenIn(createStreamTokens(`${secret}!`).offer(keyId, beginMs))).not.toBe(token);
  });

  it.each([
    ["at its start", beginMs],
    ["shortly before its start, because clocks can be slow", beginMs - clockSkewMs],
    ["shortly before it expires", beginMs + tokenLifetimeMs - 1],
  ])("is valid %s", (_when, nowMs) => {
    expect(tokens.keyIdOf(token, nowMs)).toBe(keyId);
  });

  it.each([
    ["after a day", beginMs + tokenLifetimeMs],
    ["long before its hour", beginMs - clockSkewMs - 1],
  ])("is not valid %s", (_when, nowMs) => {
    expect(tokens.keyIdOf(token, nowMs)).toBeUndefined();
  });

  it("is not valid with another secret", () => {
    expect(createStreamTokens(`${secret}!`).keyIdOf(token, beginMs)).toBeUndefined();
  });

  it.each([
    ["of another key", token.replace(keyId, apiKey().keyId)],
    ["of a later hour", token.replace(`.${hour}.`, `.${hour + 1}.`)],
    ["with a zero before the hour", token.replace(`.${hour}.`, `.0${hour}.`)],
    ["with another first character", flipped(token, token.lastIndexOf(".") + 1)],
    ["with another last character", flipped(token, token.length - 1)],
    ["without its last character", token.slice(0, -1)],
    ["with a trailing character", `${token}A`],
    ["without a signature", `${keyId}.${hour}.`],
    ["that is an API key", apiKey().text],
    ["that is empty", ""],
  ])("is not valid: a token %s", (_what, forged) => {
    expect(tokens.keyIdOf(forged, beginMs)).toBeUndefined();
  });
});

/**
 * Replaces a character by its neighbor in the alphabet. Two of the six bits of the last character are unused, so that
 * three other characters encode the same bytes. The neighbor is one of them.
 */
function flipped(text: string, index: number): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const position = alphabet.indexOf(text[index] as string);
  return text.slice(0, index) + alphabet[position ^ 1] + text.slice(index + 1);
}
