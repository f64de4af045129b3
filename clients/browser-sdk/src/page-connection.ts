import type { Clock } from "./clock.ts";
import type { Connection } from "./connection.ts";
import { type Page, watchPage } from "./page.ts";

/** A connection that pauses while its page is hidden, and reconnects when the network is available again. */
type PageConnection = {
  /** False before `open` and after `close`. */
  isOpen(): boolean;
  /** Starts a connection, instead of the one that is open. */
  open(): void;
  close(): void;
};

export function createPageConnection(options: {
  page: Page | undefined;
  clock: Clock;
  start: () => Connection;
  onPaused: () => void;
}): PageConnection {
  const { page, clock, start, onPaused } = options;
  let connection: Connection | undefined;
  let endWatch: (() => void) | undefined;

  function disconnect(): void {
    connection?.close();
    connection = undefined;
  }

  const events = {
    onPause() {
      if (!connection) return;
      disconnect();
      onPaused();
    },
    onResume() {
      connection ??= start();
    },
    onNetworkChange: () => connection?.restart(),
  };

  return {
    isOpen: () => !!endWatch,
    open() {
      disconnect();
      connection = start();
      endWatch ??= page ? watchPage(page, clock, events) : () => {};
    },
    close() {
      disconnect();
      endWatch?.();
      endWatch = undefined;
    },
  };
}
