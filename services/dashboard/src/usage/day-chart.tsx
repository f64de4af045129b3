import {
  Bar,
  BarChart,
  CartesianGrid,
  ReferenceLine,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from "recharts";
import { count, shortCount } from "../ui/numbers.ts";
import { fullDay } from "./months.ts";
import type { ExpectedDay } from "./projection.ts";
import styles from "./usage.module.css";

/** The line of the even share is left out if it is this many times higher than the highest bar. */
const maxScale = 4;

const height = 240;

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

const ticks = { fill: "var(--color-muted)", fontSize: 12 };

function Bars({ rows, line }: { rows: readonly ExpectedDay[]; line: number | undefined }) {
  return (
    <ResponsiveContainer width="100%" height={height}>
      <BarChart
        data={rows as ExpectedDay[]}
        margin={{ top: 12, right: 4, bottom: 0, left: 0 }}
        accessibilityLayer={false}
      >
        <CartesianGrid vertical={false} stroke="var(--color-border)" />
        <XAxis
          dataKey="date"
          tickFormatter={(date: string) => String(Number(date.slice(8)))}
          tick={ticks}
          tickLine={false}
          stroke="var(--color-border)"
        />
        <YAxis
          tickFormatter={shortCount}
          tick={ticks}
          tickLine={false}
          axisLine={false}
          width={48}
          allowDecimals={false}
          domain={[0, "auto"]}
        />
        <Tooltip content={DayTooltip} cursor={{ fill: "var(--color-hover)" }} />
        <Bar
          dataKey="requests"
          stackId="day"
          fill="var(--color-accent)"
          isAnimationActive={false}
        />
        <Bar
          dataKey="expected"
          stackId="day"
          fill="var(--color-accent-soft)"
          stroke="var(--color-accent)"
          strokeDasharray="3 2"
          isAnimationActive={false}
        />
        {line !== undefined && (
          <ReferenceLine
            y={line}
            ifOverflow="extendDomain"
            stroke="var(--color-text)"
            strokeDasharray="6 3"
          />
        )}
      </BarChart>
    </ResponsiveContainer>
  );
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

type TooltipProps = { active?: boolean; payload?: readonly { payload?: unknown }[] };

function DayTooltip({ active, payload }: TooltipProps) {
  const day = payload?.[0]?.payload as ExpectedDay | undefined;
  if (!active || day === undefined) return null;
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
