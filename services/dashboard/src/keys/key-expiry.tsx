import { useEffect, useState } from "react";
import { useKeySession } from "../session/session.tsx";
import { clockText } from "../ui/dates.ts";
import { Warning } from "../ui/panels.tsx";
import { endsSoon } from "./key-state.ts";

/** Time between two checks. A timer of hours would be late after the computer slept. */
const checkMs = 10_000;

/** Warns before the key of the session expires. */
export function KeyExpiry() {
  const { expires_at: expiresAt } = useKeySession().me.key;
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), checkMs);
    return () => clearInterval(timer);
  }, []);
  if (expiresAt === null || !endsSoon(expiresAt, now)) return null;
  return (
    <Warning>
      Your key expires at {clockText(new Date(expiresAt))}. Save your work before then. If you
      cannot, this tab keeps unsaved changes to a flag until you sign in with another key.
    </Warning>
  );
}
