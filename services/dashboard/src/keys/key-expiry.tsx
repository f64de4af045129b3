import { useEffect, useState } from "react";
import { useKeySession } from "../session/session.tsx";
import { clockText } from "../ui/dates.ts";
import { Warning } from "../ui/panels.tsx";
import { endsSoon } from "./key-state.ts";

/** Time between two checks. A timer of hours would be late after the computer slept. */
const checkMs = 10_000;

/** Returns whether a time is in the next ten minutes. */
export function useEndsSoon(at: string | null): boolean {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), checkMs);
    return () => clearInterval(timer);
  }, []);
  return endsSoon(at, now);
}

/** Warns before the key of the session expires. */
export function KeyExpiry() {
  const { expires_at: expiresAt } = useKeySession().me.key;
  if (!useEndsSoon(expiresAt) || expiresAt === null) return null;
  return (
    <Warning>
      Your key expires at {clockText(new Date(expiresAt))}. Save your work before then. If you
      cannot, this tab keeps unsaved changes to a flag until you sign in with another key.
    </Warning>
  );
}
