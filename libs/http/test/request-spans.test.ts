import { eventually, type RecordedSpan, recordSpans } from "@halyard/testing";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { type GivenApp, givenApp, sendRaw } from "./given-app.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: "a=1" };

let recorded: ReturnType<typeof recordSpans>;
let given: GivenApp;

beforeEach(async () => {
  recorded = recordSpans();
  given = await givenApp((app) => {
    app.get("/flags/:id", async () => "found");
    app.get("/fails", () => Promise.reject(new Error("broken")));
    app.get("/hangs", () => new Promise(() => undefined));
    app.get("/live", { config: { measured: false } }, async () => "alive");
  });
});
afterEach(async () => {
  await given.close();
  recorded.stop();
});

/** Returns the only span, when it has ended. */
const onlySpan = (): Promise<RecordedSpan> =>
  eventually(() => {
    expect(recorded.spans).toHaveLength(1);
    return recorded.spans[0]?.hasEnded ? recorded.spans[0] : undefined;
  });

it("gives a request a span, with the caller as the parent, and without the query", async () => {
  await fetch(`${given.url}/flags/one?user=secret`, { headers });
  expect(await onlySpan()).toMatchObject({
    name: "GET /flags/:id",
    kind: "server",
    parent: headers,
    attributes: {
      "http.request.method": "GET",
      "http.route": "/flags/:id",
      "url.path": "/flags/one",
      "url.scheme": "http",
      "http.response.status_code": 200,
    },
    failures: [],
  });
  expect(JSON.stringify(recorded.spans)).not.toContain("secret");
});

it("begins a trace without a valid caller", async () => {
  await fetch(`${given.url}/flags/one`, { headers: { traceparent: "00-1-2-3" } });
  expect((await onlySpan()).parent).toBeNull();
});

it("masks API keys in the path", async () => {
  await fetch(`${given.url}/flags/hs_abcdefghijklmnop_secretsecretsecret`);
  expect((await onlySpan()).attributes["url.path"]).toBe("/flags/hs_[hidden]");
});

it("marks the span of an error of the server, and logs its trace id", async () => {
  await fetch(`${given.url}/fails`, { headers });
  expect(await onlySpan()).toMatchObject({ failures: ["500"] });
  const ofTrace = given.lines().filter((line) => line.trace_id === traceId);
  expect(ofTrace.map(({ msg }) => msg)).toEqual(["request failed", "request"]);
});

it("ends the span of a request whose client has left", async () => {
  const left = new AbortController();
  const answered = fetch(`${given.url}/hangs`, { signal: left.signal });
  await eventually(() => recorded.spans.length === 1);
  left.abort();
  await expect(answered).rejects.toThrow();
  expect(await onlySpan()).toMatchObject({ failures: ["connection_closed"] });
});

it("gives no span to routes that are not measured, and to unknown and malformed requests", async () => {
  await fetch(`${given.url}/live`);
  await fetch(`${given.url}/unknown`);
  await sendRaw(given.port, "GET /flags/%zz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  expect(recorded.spans).toEqual([]);
});
