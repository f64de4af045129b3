import { timeText } from "../ui/dates.ts";
import { Section } from "./section.tsx";
import { limitMs, millisecondsText, type Propagation } from "./status-facts.ts";
import styles from "./status-page.module.css";

/** The delay of the last changes as bars, oldest first. The caption says the same in numbers. */
export function PropagationChart({ propagation }: { propagation: Propagation }) {
  const { recent, median_ms, p99_ms } = propagation;
  return (
    <Section
      title="How fast changes arrive"
      lead={`Time from the commit of a change until every edge serves it, for the last ${recent.length || 100} changes. Worry if bars reach ${limitMs} ms while no edge starts.`}
    >
      {recent.length === 0 ? (
        <p className={styles.note}>
          No change was made since the management process that answers started.
        </p>
      ) : (
        <figure className={styles.chart}>
          <figcaption className={styles.caption}>
            <Fact label="Median" value={millisecondsText(median_ms)} />
            <Fact label="99 of 100 within" value={millisecondsText(p99_ms)} />
            <Fact label={`Over ${limitMs} ms`} value={lateCount(recent)} />
          </figcaption>
          <Bars recent={recent} />
          <p className={styles.axis}>
            <span>oldest</span>
            <span>newest</span>
          </p>
        </figure>
      )}
    </Section>
  );
}

function Fact({ label, value }: { label: string; value: string }) {
  return (
    <span>
      {label} <strong>{value}</strong>
    </span>
  );
}

const lateCount = (recent: Propagation["recent"]) =>
  String(recent.filter(({ applied_ms }) => applied_ms === null).length);

function Bars({ recent }: Pick<Propagation, "recent">) {
  const highest = Math.max(...recent.map(({ applied_ms }) => applied_ms ?? limitMs));
  const isAnyLate = recent.some(({ applied_ms }) => applied_ms === null);
  const top = millisecondsText(isAnyLate ? null : highest);
  return (
    <div
      className={styles.plot}
      role="img"
      aria-label={`Delays of the last ${recent.length} changes. The longest is ${top}.`}
    >
      <span className={styles.highest} aria-hidden>
        {top}
      </span>
      {recent.toReversed().map(({ committed_at, applied_ms }, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: two changes can have the same time, and bars have no state.
          key={`${committed_at} ${index}`}
          className={`${styles.bar} ${applied_ms === null ? styles.late : ""}`}
          style={{ height: `${Math.max(2, ((applied_ms ?? limitMs) / highest) * 100)}%` }}
          title={`${millisecondsText(applied_ms)} at ${timeText(new Date(committed_at))}`}
        />
      ))}
    </div>
  );
}
