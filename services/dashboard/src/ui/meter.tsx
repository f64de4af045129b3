import { Meter as AriaMeter, Label } from "react-aria-components";
import styles from "./meter.module.css";
import { count } from "./numbers.ts";

/** Share of a limit that turns a meter to its warning color. */
const warningShare = 0.9;

const toneOf = (used: number, limit: number) => {
  if (used >= limit) return "danger";
  return used >= limit * warningShare ? "warning" : "normal";
};

type LimitMeterProps = {
  label: string;
  used: number;
  limit: number | null;
  /** False if nothing breaks at the limit. */
  isAlarming?: boolean;
  /** Returns the text of an amount. */
  format?: (amount: number) => string;
};

/** A used amount against its limit. Without a limit it shows the amount only. */
export function LimitMeter({
  label,
  used,
  limit,
  isAlarming = true,
  format = count,
}: LimitMeterProps) {
  if (limit === null)
    return (
      <div className={styles.meter}>
        <span className={styles.label}>{label}</span>
        <span className={styles.value}>
          <strong>{format(used)}</strong> · unlimited
        </span>
      </div>
    );
  return (
    <AriaMeter
      className={styles.meter ?? ""}
      value={Math.min(used, limit)}
      maxValue={Math.max(limit, 1)}
      valueLabel={`${format(used)} of ${format(limit)}`}
    >
      {({ percentage }) => (
        <>
          <Label className={styles.label ?? ""}>{label}</Label>
          <span className={styles.value}>
            <strong>{format(used)}</strong> of {format(limit)}
          </span>
          <div className={styles.track} data-tone={isAlarming ? toneOf(used, limit) : "normal"}>
            <div className={styles.fill} style={{ width: `${percentage}%` }} />
          </div>
        </>
      )}
    </AriaMeter>
  );
}
