import { beforeEach, describe, expect, it } from "@jest/globals";
import { createUpstreams, type Upstreams } from "../src/upstreams.ts";

/** Which process gets the next request, by a clock of the test's. */
let upstreams: Upstreams;
let nowMs: number;
beforeEach(() => {
  upstreams = createUpstreams(["one", "two", "three"].map((name) => new URL(`http://${name}`)));
  nowMs = 1_000_000;
});

/** Sends a request to whoever is next. */
function send() {
  const upstream = upstreams.next(nowMs);
  const waiting = upstreams.waits(upstream, nowMs);
  return {
    to: upstream.origin.hostname,
    answer: () => waiting.answered(nowMs),
    end: () => waiting.ended(nowMs),
  };
}

/** Sends requests that are answered at once, but for those that `silent` gets; says who got them. */
function sendMany(count: number, silent?: string): string[] {
  return Array.from({ length: count }, () => {
    const request = send();
    if (request.to !== silent) request.answer();
    return request.to;
  });
}

/** The first of the three takes a request, and answers neither that nor any other. */
function getStuck() {
  const request = send();
  nowMs += 3_000;
  return request;
}

describe("given a process that is stuck", () => {
  it("takes its turn for three seconds, and is left out then", () => {
    send();
    nowMs += 2_999;
    expect(sendMany(3, "one")).toEqual(["two", "three", "one"]);
    nowMs += 1;
    expect(new Set(sendMany(9, "one"))).toEqual(new Set(["two", "three"]));
  });

  it("gets one request at a time when those before have ended in vain, and is said to be away", () => {
    getStuck().end();
    expect(upstreams.origins()).toMatchObject([{ away: true }, { away: false }, { away: false }]);
    expect(sendMany(9, "one").filter((to) => to === "one")).toHaveLength(1);
  });

  it("takes its turn again as soon as it has answered one", () => {
    getStuck().end();
    expect(sendMany(3)).toContain("one");
    expect(sendMany(9).filter((to) => to === "one")).toHaveLength(3);
    expect(upstreams.origins()).toMatchObject([{ away: false }, { away: false }, { away: false }]);
  });

  it("gets requests all the same when the others are stuck, too", () => {
    const sendThree = () => [send(), send(), send()].map(({ to }) => to);
    sendThree();
    nowMs += 3_000;
    expect(sendThree()).toEqual(["one", "two", "three"]);
  });
});

describe("given a process with one slow request", () => {
  it("takes its turn as long as it answers others", () => {
    const slow = send();
    for (let time = 0; time < 5; time++) {
      nowMs += 2_999;
      expect(sendMany(3).sort()).toEqual(["one", "three", "two"]);
    }
    slow.end();
    expect(upstreams.origins()).toMatchObject([{ away: false }, { away: false }, { away: false }]);
  });
});
