import { randomUUID } from "node:crypto";
import { checkEdgeReport, edgeReports, type SnapshotRevision } from "@halyard/contracts";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type AppliedReports, reportApplied } from "../../src/snapshot/report-applied.ts";

const edge = randomUUID();
const epoch = randomUUID();
let sent: unknown[];
let applied: SnapshotRevision | undefined;
let isCurrent: boolean;
let onApplied: () => void;
let reports: AppliedReports;

beforeEach(() => {
  jest.useFakeTimers();
  sent = [];
  applied = undefined;
  isCurrent = true;
  reports = reportApplied({
    connection: {
      publish: (subject, payload) => {
        expect(subject).toBe(edgeReports.subject);
        const report = JSON.parse(String(payload));
        expect(checkEdgeReport(report)).toMatchObject({ ok: true });
        sent.push(report.revision ?? report.state);
      },
      flush: async () => undefined,
      isClosed: () => false,
    },
    edge,
    holder: {
      get applied() {
        return applied;
      },
      onApplied: (listener) => {
        onApplied = listener;
      },
    },
    isCurrent: () => isCurrent,
  });
});
afterEach(() => {
  reports.stop();
  jest.useRealTimers();
});

function apply(revision: number): void {
  applied = { epoch, revision };
  onApplied();
}

describe("the reports of an edge", () => {
  it("start with `starting` and end with `stopped`", () => {
    expect(sent).toEqual(["starting"]);
    reports.stop();
    apply(1);
    jest.advanceTimersByTime(2 * edgeReports.intervalMs);
    expect(sent).toEqual(["starting", "stopped"]);
  });

  it("are sent immediately for a change, and at most a hundred times a second in a burst", () => {
    apply(1);
    expect(sent).toEqual(["starting", 1]);
    for (let revision = 2; revision <= 1_001; revision += 1) {
      apply(revision);
      jest.advanceTimersByTime(1);
    }
    expect(sent.length).toBeLessThanOrEqual(2 + 100);
    jest.advanceTimersByTime(edgeReports.minIntervalMs);
    expect(sent.at(-1)).toBe(1_001);
  });

  it("are repeated while nothing changes, as long as the edge follows the snapshot", () => {
    apply(1);
    jest.advanceTimersByTime(2 * edgeReports.intervalMs);
    expect(sent).toEqual(["starting", 1, 1, 1]);
    isCurrent = false;
    jest.advanceTimersByTime(2 * edgeReports.intervalMs);
    expect(sent).toEqual(["starting", 1, 1, 1]);
  });
});
