import { count, shortCount } from "../ui/numbers.ts";
import { fullDay } from "./months.ts";
import type { ExpectedDay } from "./projection.ts";
import { scaleTo } from "./scale.ts";
import styles from "./usage.module.css";

/** The line of the even share is left out if it is this many times higher than the highest bar. */
const maxScale = 4;

type DayChartProps = { rows: readonly ExpectedDay[]; evenShare: number | undefined; label: string };

/**
 * Requests by day as bars, with the expected ones in a lighter color. The line is the even daily share of the limit:
 * while the bars stay below it on average, the plan is enough.
 */
export function DayChart({ rows, evenShare, label }: DayChartProps) {
  const highest = Math.max(...rows.map(({ requests, expected }) => requests + expected));
  const hasLine = evenShare !== undefined && evenShare <= highest * maxScale;
  return (
    <figure className={styles.chart}>
      <div role="img" aria-label={label}>
        <Bars rows={rows} line={hasLine ? evenShare : undefined} />
      </div>
      <Legend
        evenShare={evenShare}
        hasLine={hasLine}
        hasExpected={rows.some(({ expected }) => expected > 0)}
      />
    </figure>
  );
}

function Bars({ rows, line = 0 }: { rows: readonly ExpectedDay[]; line: number | undefined }) {
  const labels = scaleTo(Math.max(line, ...rows.map((day) => day.requests + day.expected)));
  const percent = (value: number) => `${(100 * value) / (labels.at(-1) ?? 1)}%`;
  return (
    <div className={styles.plot}>
      {labels.map((label) => (
        <span key={label} className={styles.tick} style={{ bottom: percent(label) }}>
          {shortCount(label)}
        </span>
      ))}
      <div className={styles.days}>
        {rows.map((day) => (
          <div key={day.date} className={styles.day} data-date={dayLabel(day.date)}>
            <div data-mark="requests" style={{ height: percent(day.requests) }} />
            {day.expected > 0 && (
              <div data-mark="expected" style={{ height: percent(day.expected) }} />
            )}
            <DayTooltip day={day} />
          </div>
        ))}
        {line > 0 && <div data-mark="share" style={{ bottom: percent(line) }} />}
      </div>
    </div>
  );
}

/** Days between the labels of the horizontal axis, which fit beside each other on a narrow screen. */
const labelledDays = 5;

function dayLabel(date: string): string | undefined {
  const day = Number(date.slice(8));
  return day === 1 || day % labelledDays === 0 ? String(day) : undefined;
}

type LegendProps = { evenShare: number | undefined; hasLine: boolean; hasExpected: boolean };

function Legend({ evenShare, hasLine, hasExpected }: LegendProps) {
  return (
    <figcaption className={styles.legend}>
      <span data-mark="requests">Requests</span>
      {hasExpected && <span data-mark="expected">Expected</span>}
      {evenShare !== undefined &&
        (hasLine ? (
          <span data-mark="share">Even share of the limit: {shortCount(evenShare)} a day</span>
        ) : (
          <span>
            The even share of the limit, {shortCount(evenShare)} a day, is far above the chart.
          </span>
        ))}
    </figcaption>
  );
}

function DayTooltip({ day }: { day: ExpectedDay }) {
  return (
    <div className={styles.tooltip}>
      <p>{fullDay(day.date)}</p>
      <p>
        <strong>{count(day.requests)}</strong> requests
      </p>
      {day.expected > 0 && <p>{count(day.expected)} more expected</p>}
    </div>
  );
}
