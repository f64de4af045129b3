import { EventEmitter } from "node:events";
import type { Problem } from "@halyard/service";
import { beforeEach, describe, expect, it } from "@jest/globals";
import type { Exchange } from "../../src/http/exchange.ts";
import { takeSlot } from "../../src/sdk/take-slot.ts";
import type { StreamSlots } from "../../src/slots/stream-slots.ts";

/** A stream whose values are evaluated asynchronously. The tests call `open` when the values are ready. */
let response: EventEmitter & { destroyed: boolean };
let released: number;
let isDraining: boolean;
let open: ((begin: () => void) => void) | undefined;
let answer: Problem | "opened" | undefined;

beforeEach(() => {
  response = Object.assign(new EventEmitter(), { destroyed: false });
  released = 0;
  isDraining = false;
  open = undefined;
  answer = undefined;
});

describe.each([
  { granted: "slots of the plan", isLimited: true },
  { granted: "no limits", isLimited: false },
])("given $granted, and a stream whose values are not ready", ({ isLimited }) => {
  beforeEach(() => ask(isLimited));

  it("opens when they are ready", () => {
    opens();
    expect(answer).toBe("opened");
  });

  it("does not open if the edge starts to close its streams meanwhile", () => {
    isDraining = true;
    opens();
    expect(codeOf(answer)).toBe("SERVER_002");
  });
});

describe("given slots of the plan", () => {
  it("releases the slot once when the response ends", () => {
    ask(true);
    opens();
    expect(released).toBe(0);
    response.emit("close");
    expect(released).toBe(1);
  });

  it("releases the slot if the client has disconnected before it was granted", () => {
    response.destroyed = true;
    ask(true);
    expect(released).toBe(1);
    expect(answer).toBeUndefined();
  });
});

function ask(isLimited: boolean): void {
  const slots = {
    take: (_organizationId: string, decided: (problem: undefined) => void) => decided(undefined),
    release: () => {
      released += 1;
    },
  } as unknown as StreamSlots;
  const exchange = {
    response,
    key: { organizationId: "ropes" },
    guarded: (work: () => void) => work(),
  } as unknown as Exchange;
  takeSlot(
    exchange,
    { slots: isLimited ? slots : undefined, isDraining: () => isDraining },
    {
      reject: (problem) => {
        answer = problem;
      },
      granted: (whenReady) => {
        open = whenReady;
      },
    },
  );
}

function opens(): void {
  open?.(() => {
    answer = "opened";
  });
}

function codeOf(granted: typeof answer): string | undefined {
  return typeof granted === "object" ? granted.rejected : undefined;
}
