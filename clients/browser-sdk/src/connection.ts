import type { Clock } from "./clock.ts";
import type { Edge, Values } from "./edge.ts";
import { firstState, nextStep, type Outcome } from "./next-step.ts";

/** Keeps the values of one user current until it is closed. */
export type Connection = {
  /** Connects again immediately, because the page came back or the network changed. */
  restart(): void;
  close(): void;
};

export type Activity = "connecting" | "streaming" | "polling" | "waiting" | "stopped";

export function openConnection(options: {
  edge: Edge;
  clock: Clock;
  /** Returns the tag of the current values. */
  tag: () => string | undefined;
  onValues: (values: Values | undefined) => void;
  onActivity: (activity: Activity) => void;
  /** Receives the outcome of each attempt. `stopped`: no further attempt follows. */
  onOutcome: (outcome: Outcome, stopped: boolean) => void;
}): Connection {
  const { edge, clock, onActivity, onOutcome } = options;
  let isOpen = true;
  let isRestarting = false;
  /** Ends the current attempt or wait. */
  let interrupt = () => {};

  async function attempt(polls: boolean): Promise<Outcome> {
    const abort = new AbortController();
    interrupt = () => abort.abort();
    onActivity(polls ? "polling" : "connecting");
    return (polls ? edge.poll : edge.stream)({
      signal: abort.signal,
      tag: options.tag(),
      onValues(values) {
        // A response may arrive between the abort and its effect.
        if (abort.signal.aborted) return;
        if (!polls) onActivity("streaming");
        options.onValues(values);
      },
    });
  }

  async function wait(ms: number): Promise<void> {
    onActivity("waiting");
    await new Promise<void>((resolve) => {
      const cancel = clock.after(ms, resolve);
      interrupt = () => {
        cancel();
        resolve();
      };
    });
  }

  async function run(): Promise<void> {
    let state = firstState(edge.streams);
    while (isOpen) {
      if (isRestarting) state = firstState(edge.streams);
      isRestarting = false;
      const outcome = await attempt(state.polls > 0);
      if (!isOpen) return;
      if (isRestarting) continue;
      const step = nextStep(state, outcome, clock.random());
      onOutcome(outcome, step === "stop");
      if (step === "stop") {
        onActivity("stopped");
        return;
      }
      state = step.state;
      if (step.waitMs > 0 && isOpen && !isRestarting) await wait(step.waitMs);
    }
  }

  void run();
  return {
    restart() {
      isRestarting = true;
      interrupt();
    },
    close() {
      isOpen = false;
      interrupt();
    },
  };
}
