import { createLogger, createMetrics } from "@halyard/service";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createRepeatedLog } from "../src/repeated-log.ts";
import { findUnusedOrigin, givenGateway } from "./given-gateway.ts";

let lines: Record<string, unknown>[];
function givenLogger() {
  lines = [];
  return createLogger({
    service: "gateway",
    level: "info",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
}

describe("given equal warnings", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it("writes the first warning, and the number of the others at the end of the interval", () => {
    const warn = createRepeatedLog(givenLogger());
    for (let time = 0; time < 100; time++) warn({ cause: "one" }, "failed");
    warn({ cause: "two" }, "failed");
    expect(lines).toMatchObject([{ cause: "one" }, { cause: "two" }]);
    jest.advanceTimersByTime(10_000);
    expect(lines.slice(2)).toMatchObject([{ cause: "one", repeated: 99, msg: "failed" }]);
    warn({ cause: "one" }, "failed");
    expect(lines).toHaveLength(4);
  });
});

describe("given an upstream without a process", () => {
  it("writes one line for many failed requests", async () => {
    const unusedOrigin = await findUnusedOrigin();
    const metrics = createMetrics({ service: "gateway" });
    const gateway = await givenGateway({
      management: [unusedOrigin],
      edges: [],
      logger: givenLogger(),
      metrics,
    });
    for (let time = 0; time < 20; time++)
      expect((await fetch(`${gateway.url}/api/v1/flags`)).status).toBe(503);
    await gateway.stop();
    expect(lines.filter(({ msg }) => msg === "request not forwarded")).toHaveLength(1);
  });
});
