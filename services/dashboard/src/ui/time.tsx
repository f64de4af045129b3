import { useEffect, useState } from "react";
import { Focusable } from "react-aria-components";
import { clockText, localTime, relativeTime, utcTime } from "./dates.ts";
import styles from "./time.module.css";
import { Tooltip } from "./tooltip.tsx";

const refreshMs = 30_000;

/** Returns the time, which advances every half minute. */
export function useNow(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), refreshMs);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** The time of day, under a heading with the day. */
export function ClockTime({ at }: { at: string }) {
  return <Instant at={at} text={clockText(new Date(at))} />;
}

/** A time relative to now. */
export function Time({ at }: { at: string }) {
  const now = useNow();
  return <Instant at={at} text={relativeTime(new Date(at), now)} />;
}

/** The local time and UTC are in a tooltip, which the keyboard reaches too. Pressing does nothing, so it is no button. */
function Instant({ at, text }: { at: string; text: string }) {
  const instant = new Date(at);
  return (
    <Tooltip text={`${localTime(instant)} · ${utcTime(instant)}`}>
      <Focusable>
        <time dateTime={at} className={styles.time}>
          {text}
        </time>
      </Focusable>
    </Tooltip>
  );
}
