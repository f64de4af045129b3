import { getFlag, issueKey } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { answer, registerRoute } from "../src/index.ts";
import { type GivenApp, givenApp } from "./given-app.ts";

const id = "018f0000-0000-7000-8000-000000000001";
const large = { text: "a".repeat(2_000) };
const etag = '"7-HgaVDNL2"';

let given: GivenApp;
beforeAll(async () => {
  const register = (app: GivenApp["app"]) => {
    const authenticate = () => ({ name: "caller" });
    registerRoute(app, getFlag, { authenticate, handle: () => answer.ok(large, { etag }) });
    registerRoute(app, issueKey, { authenticate, handle: () => answer.created("/key", large) });
  };
  given = await givenApp(register, { checkAnswers: false });
});
afterAll(() => given.close());

/** Requests the flag, or a new key. `fetch` decompresses the body, and leaves the headers. */
const read = (coding: string) =>
  fetch(`${given.url}/api/v1/flags/${id}`, { headers: { "accept-encoding": coding } });
const issue = (coding: string) =>
  fetch(`${given.url}/api/v1/projects/${id}/environments/${id}/keys`, {
    method: "POST",
    headers: { "accept-encoding": coding, "content-type": "application/json" },
    body: JSON.stringify(issueKey.example),
  });

describe("given a client that accepts gzip", () => {
  it("compresses a large response, whose ETag stays the same", async () => {
    const [plain, compressed] = await Promise.all([read("identity"), read("gzip")]);
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(compressed.headers.get("content-encoding")).toBe("gzip");
    expect([plain, compressed].map(({ headers }) => headers.get("etag"))).toEqual([etag, etag]);
    expect(await compressed.json()).toEqual(large);
  });

  it("does not compress a response with a key", async () => {
    const issued = await issue("gzip");
    expect(issued.headers.get("content-encoding")).toBeNull();
    expect(Number(issued.headers.get("content-length"))).toBeGreaterThan(large.text.length);
  });
});
