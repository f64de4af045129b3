import { EventEmitter } from "node:events";
import type { Problem } from "@halyard/service";
import { beforeEach, describe, expect, it } from "@jest/globals";
import type { Exchange } from "../../src/http/exchange.ts";
import { takeSlot } from "../../src/sdk/take-slot.ts";
import type { StreamSlots } from "../../src/slots/stream-slots.ts";

/** A stream whose values take a while to be evaluated: `open` is called when they are there. */
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
])("given $granted, and a stream that is not evaluated yet", ({ isLimited }) => {
  beforeEach(() => ask(isLimited));

  it("opens when it is", () => {
    opens();
    expect(answer).toBe("opened");
  });

  it("does not open when the edge has begun to close its streams meanwhile", () => {
    isDraining = true;
    opens();
    expect(codeOf(answer)).toBe("SERVER_002");
  });
});

describe("given slots of the plan", () => {
  it("gives the slot back when the answer is over, once", () => {
    ask(true);
    opens();
    expect(released).toBe(0);
    response.emit("close");
    expect(released).toBe(1);
  });

  it("gives it back when the client has left before it was given", () => {
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
