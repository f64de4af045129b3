import { type Query, useQueryClient } from "@tanstack/react-query";
import { Bell, BellOff } from "lucide-react";
import { createContext, type ReactNode, use, useEffect, useState } from "react";
import { createFlagRefresher } from "../flags/refresh-flags.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { IconButton } from "../ui/button.tsx";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { createDeliveryRefresher } from "../webhooks/refresh-deliveries.ts";
import { createAnnouncer } from "./announce.ts";
import { createInvalidator } from "./apply-change.ts";
import { followChanges, type LiveState } from "./follow-changes.ts";
import styles from "./live.module.css";
import { isMuted, setMuted } from "./muted.ts";
import { createPacer } from "./pacer.ts";

/** A script can change hundreds of flags a second, in every open tab. A single change appears almost immediately. */
const readPace = { collectMs: 150, everyMs: 1_000 };

const LiveContext = createContext<LiveState>("connecting");

/** Keeps what is shown current: follows the project's changes, and announces those of other people. */
export function LiveChanges({ children }: { children: ReactNode }) {
  const session = useKeySession();
  const { refresh, reject, readRolesAgain } = useSessions();
  const client = useQueryClient();
  const [state, setState] = useState<LiveState>("connecting");

  // biome-ignore lint/correctness/useExhaustiveDependencies: a session keeps its token, and names in it may change.
  useEffect(() => {
    const ending = new AbortController();
    const refresher = createFlagRefresher(client, session.api);
    // Muting also stops a notice that is still collected, and no muted change is announced later.
    const isQuiet = () => isMuted(sessionStorage);
    const announcer = createAnnouncer(session.me, (text) => isQuiet() || notify({ text }));
    // If it fails, the names are read again with the next reload.
    const refreshNames = () => void refresh(session.token).catch(() => undefined);
    const invalidator = createInvalidator(client, refreshNames);
    const reads = createPacer(() => {
      refresher.read();
      invalidator.read();
    }, readPace);
    const deliveries = createDeliveryRefresher(() => {
      invalidator.takeQuery(["deliveries"]);
      reads.request();
    });
    void followChanges({
      url: `/api/v1/projects/${session.me.project.id}/changes/stream`,
      headers: session.headers,
      signal: ending.signal,
      onState: (next) => {
        setState(next);
        if (next === "live") void client.invalidateQueries({ predicate: hasFailed });
      },
      onRejected: () => reject(session.token),
      onForbidden: readRolesAgain,
      onReset: () => {
        invalidator.takeAll();
        // Immediately, because the pages that open next would otherwise be read twice.
        reads.request(0);
      },
      onFlagChanged: (flagKey) => {
        refresher.take(flagKey);
        invalidator.takeQuery(["flag", flagKey]);
        reads.request();
      },
      onChange: (change) => {
        if (change.flag_key !== null) refresher.take(change.flag_key);
        deliveries.take(change);
        invalidator.take(change);
        reads.request();
        if (!isQuiet()) announcer.take(change);
      },
    });
    return () => {
      ending.abort();
      reads.stop();
      deliveries.stop();
      announcer.stop();
    };
  }, [client, session.token]);
  return <LiveContext value={state}>{children}</LiveContext>;
}

/** Selects failed queries, which are read again after a reconnect. */
const hasFailed = ({ state }: Query) => state.error !== null;

const stateTexts: Record<LiveState, string> = {
  live: "Live",
  connecting: "Connecting…",
  lost: "Not connected",
};

/** Shows whether changes of other people arrive. */
export function LiveIndicator() {
  const state = use(LiveContext);
  return (
    <p className={styles.live} data-state={state}>
      <span className={styles.dot} aria-hidden />
      {stateTexts[state]}
    </p>
  );
}

/** Stops and starts the notices about changes of other people, in this tab. */
export function MuteButton() {
  const [muted, change] = useState(() => isMuted(sessionStorage));
  const toggle = () => {
    setMuted(sessionStorage, !muted);
    change(!muted);
  };
  return (
    <IconButton
      icon={muted ? BellOff : Bell}
      iconSize={17}
      label="Mute notices about changes by others"
      aria-pressed={muted}
      onPress={toggle}
    />
  );
}

/** Says that the connection is lost, while it is. */
export function LostConnection() {
  if (use(LiveContext) !== "lost") return null;
  return (
    <div className={styles.banner}>
      <Warning>
        Halyard cannot be reached. What you see may be out of date; it is updated when the
        connection is back.
      </Warning>
    </div>
  );
}
