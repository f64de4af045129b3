import type { Clock } from "./clock.ts";

/** The window of a page. */
export type Page = EventTarget & { document: EventTarget & { visibilityState: string } };

type PageEvents = {
  /** The page has been hidden for long, or is leaving. Its connection takes one of the plan's streams for nothing. */
  onPause(): void;
  /** The page is visible again. */
  onResume(): void;
  /** The network came or went. A connection may be dead although it seems open. */
  onNetworkChange(): void;
};

/** Time after which a hidden page pauses. */
const maxHiddenMs = 5 * 60_000;

/** Watches the page and the network. Returns a function that ends that. */
export function watchPage(page: Page, clock: Clock, events: PageEvents): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  const { document } = page;
  let cancelPause = () => {};

  function onVisibility(): void {
    cancelPause();
    if (document.visibilityState === "hidden")
      cancelPause = clock.after(maxHiddenMs, events.onPause);
    else events.onResume();
  }

  document.addEventListener("visibilitychange", onVisibility, { signal });
  const listeners = {
    ...{ pagehide: events.onPause, pageshow: events.onResume },
    ...{ online: events.onNetworkChange, offline: events.onNetworkChange },
  };
  for (const [name, listener] of Object.entries(listeners))
    page.addEventListener(name, listener, { signal });
  onVisibility();
  return () => {
    cancelPause();
    ended.abort();
  };
}

/** Returns the window; undefined outside of pages. */
export function browserPage(): Page | undefined {
  return typeof document === "object" ? window : undefined;
}
