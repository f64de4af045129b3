import { beforeEach, describe, expect, it } from "@jest/globals";
import {
  type FailureLog,
  limitErrorLines,
  limitFailureLines,
  type RequestLog,
} from "../src/limit-error-lines.ts";

describe("given a client whose requests fail a thousand times in ten seconds", () => {
  let nowMs: number;
  let lines: { status: number; unlogged?: number }[];
  let log: RequestLog;

  beforeEach(() => {
    nowMs = 0;
    lines = [];
    log = limitErrorLines({ info: (line: object) => void lines.push(line as never) }, () => nowMs);
    for (; nowMs < 10_000; nowMs += 10) log.info({ status: 404 }, "request");
  });

  it("logs the first hundred", () => {
    expect(lines).toEqual(Array(100).fill({ status: 404 }));
  });

  it("says in the next line how many were left out, and logs all that follow", () => {
    log.info({ status: 404 }, "request");
    log.info({ status: 404 }, "request");
    expect(lines.slice(100)).toEqual([{ status: 404, unlogged: 900 }, { status: 404 }]);
  });

  it("still logs other errors, and every success", () => {
    for (let time = 0; time < 200; time++) log.info({ status: 200 }, "request");
    log.info({ status: 503 }, "request");
    expect(lines).toHaveLength(100 + 200 + 1);
  });
});

describe("given an outage that fails a thousand requests in ten seconds", () => {
  let nowMs: number;
  let lines: [level: string, line: { unlogged?: number }, message: string][];
  let log: FailureLog;

  beforeEach(() => {
    nowMs = 0;
    lines = [];
    const write = (level: string) => (line: object, message: string) =>
      void lines.push([level, line, message]);
    const logger = { error: write("error"), warn: write("warn") };
    log = limitFailureLines(logger as Parameters<typeof limitFailureLines>[0], () => nowMs);
    for (; nowMs < 10_000; nowMs += 10) log.warn({}, "request not served");
  });

  it("logs the first hundred, and says in the next line how many were left out", () => {
    log.warn({}, "request not served");
    expect(lines).toHaveLength(101);
    expect(lines.at(-1)).toEqual(["warn", { unlogged: 900 }, "request not served"]);
  });

  it("still logs failures of another kind", () => {
    log.error({}, "request failed");
    expect(lines.at(-1)).toEqual(["error", {}, "request failed"]);
  });
});
