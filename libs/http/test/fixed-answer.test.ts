import { sdkGetFlags } from "@halyard/contracts";
import { afterEach, describe, expect, it } from "@jest/globals";
import { answer, fixedAnswer, registerRoute } from "../src/index.ts";
import { type GivenApp, givenApp } from "./given-app.ts";

const authenticate = () => ({ name: "caller" });
const body = { flags: { café: true } };
const url = sdkGetFlags.path;

let given: GivenApp;
afterEach(() => given.close());

describe("given a fixed response", () => {
  let etag: string;

  async function request(ifNoneMatch?: string) {
    given = await givenApp((app) => {
      const fixed = fixedAnswer(body, { "cache-control": "max-age=5" });
      etag = String(fixed(undefined).headers?.etag);
      registerRoute(app, sdkGetFlags, {
        authenticate,
        handle: ({ request }) => fixed(request.headers["if-none-match"]),
      });
    });
    const headers = ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch };
    const answered = await fetch(given.url + url, { headers });
    return { answered, text: await answered.text() };
  }

  it.each([undefined, '"another"', "nonsense"])("returns the whole body for %s", async (sent) => {
    const { answered, text } = await request(sent);
    expect(answered.status).toBe(200);
    expect(JSON.parse(text)).toEqual(body);
    expect(Object.fromEntries(answered.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(text)),
      "cache-control": "max-age=5",
      etag,
    });
  });

  it("returns 304 without a body, with the same headers, if the tag matches", async () => {
    await request();
    await given.close();
    for (const sent of [etag, `W/${etag}`, `"a", ${etag}`, "*"]) {
      const { answered, text } = await request(sent);
      expect([answered.status, text]).toEqual([304, ""]);
      expect(answered.headers.get("etag")).toBe(etag);
      expect(answered.headers.get("cache-control")).toBe("max-age=5");
      expect(answered.headers.get("content-type")).toBeNull();
      expect(answered.headers.get("content-length")).toBeNull();
      await given.close();
    }
  });

  it("serializes its body once, and has a different tag for each body", () => {
    const fixed = fixedAnswer(body, {});
    expect(fixed(undefined).json).toBe(fixed('"another"').json);
    expect(fixedAnswer({}, {})(undefined).headers).not.toEqual(fixed(undefined).headers);
  });
});

describe("given a route that can be revalidated", () => {
  it.each([
    ["304 with a body", { status: 304, body }],
    ["204", answer.noContent()],
    ["bytes that violate its contract", { status: 200, json: Buffer.from("{}") }],
  ])("fails for a response of %s", async (_what, wrong) => {
    given = await givenApp((app) =>
      registerRoute(app, sdkGetFlags, { authenticate, handle: () => wrong }),
    );
    expect((await fetch(given.url + url)).status).toBe(500);
    expect(given.logText()).toContain("AnswerMismatchError");
  });
});
