import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight } from "lucide-react";
import { useLayoutEffect, useRef, useState } from "react";
import { type ListedFlag, type ListedState, summaryOf, toneOf } from "../flags/flag-search.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Checkbox } from "../ui/fields.tsx";
import { type Comparison, differs } from "./compare-flags.ts";
import styles from "./compare-list.module.css";
import type { Pair } from "./use-copy.ts";

/** Height of a row before it is measured. Rows are higher on narrow screens. */
const rowHeight = 60;
const overscan = 12;

type CompareListProps = {
  comparisons: readonly Comparison[];
  pair: Pair;
  /** Ids of the chosen flags. Undefined if the session cannot change the target. */
  chosen: ReadonlySet<string> | undefined;
  onChoose: (flag: ListedFlag, isChosen: boolean) => void;
  onOpen: (flag: ListedFlag) => void;
};

/** Flags in two environments. Only the rows near the window exist, so that thousands scroll smoothly. */
export function CompareList({ comparisons, pair, ...row }: CompareListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  useLayoutEffect(() => setScrollMargin(frame.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: comparisons.length,
    estimateSize: () => rowHeight,
    overscan,
    scrollMargin,
    getItemKey: (index) => comparisons[index]?.flag.id ?? index,
  });
  const isReadOnly = row.chosen === undefined;
  return (
    <div
      ref={frame}
      className={styles.frame}
      data-read-only={isReadOnly || undefined}
      role="table"
      aria-label={`Flags in ${pair.from.name} and ${pair.to.name}`}
      aria-rowcount={comparisons.length + 1}
    >
      <div role="rowgroup" className={styles.heads}>
        <div role="row" aria-rowindex={1} className={styles.head}>
          {!isReadOnly && (
            <span role="columnheader">
              <span className="visually-hidden">Choose</span>
            </span>
          )}
          <span role="columnheader">Flag</span>
          <span role="columnheader">{pair.from.name}</span>
          <span role="columnheader">{pair.to.name}</span>
          <span role="columnheader">Difference</span>
        </div>
      </div>
      <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const comparison = comparisons[index];
          if (comparison === undefined) return null;
          return (
            <div
              key={key}
              ref={rows.measureElement}
              data-index={index}
              role="row"
              aria-rowindex={index + 2}
              className={styles.row}
              style={{ transform: `translateY(${start - scrollMargin}px)` }}
            >
              <Cells comparison={comparison} pair={pair} {...row} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Cells({
  comparison,
  pair,
  chosen,
  onChoose,
  onOpen,
}: Omit<CompareListProps, "comparisons"> & { comparison: Comparison }) {
  const { flag, from, to } = comparison;
  return (
    <>
      {chosen !== undefined && (
        <div role="cell" className={styles.choose}>
          <Checkbox
            isSelected={chosen.has(flag.id)}
            isDisabled={!differs(comparison)}
            onChange={(isChosen) => onChoose(flag, isChosen)}
          >
            <span className="visually-hidden">Choose {flag.key}</span>
          </Checkbox>
        </div>
      )}
      <div role="cell" className={styles.flag}>
        <Link
          to="/flags/$flagKey"
          params={{ flagKey: flag.key }}
          search={{ env: pair.to.name }}
          preload={false}
          className={styles.key ?? ""}
        >
          {flag.key}
        </Link>
        <span className={styles.name}>{flag.name}</span>
      </div>
      <StateCell environment={pair.from.name} state={from} className={styles.from} />
      <StateCell environment={pair.to.name} state={to} className={styles.to} />
      <div role="cell" className={styles.difference}>
        <Differing comparison={comparison} onOpen={() => onOpen(flag)} />
      </div>
    </>
  );
}

type StateCellProps = { environment: string; state: ListedState; className: string | undefined };

function StateCell({ environment, state, className }: StateCellProps) {
  return (
    <div role="cell" className={className}>
      <span className={styles.environment}>{environment}</span>
      <Badge tone={toneOf(state)}>{summaryOf(state)}</Badge>
    </div>
  );
}

function Differing({ comparison, onOpen }: { comparison: Comparison; onOpen: () => void }) {
  const { flag, differing, isUnknown } = comparison;
  if (!differs(comparison))
    return <span className={styles.same}>{isUnknown ? "Checking rules…" : "Same"}</span>;
  return (
    <Button size="small" variant="quiet" onPress={onOpen}>
      {differing.map((subject) => (
        <Badge key={subject} tone="warning">
          {subject}
        </Badge>
      ))}
      <span>
        Show<span className="visually-hidden"> the difference of {flag.key}</span>
      </span>
      <ChevronRight size={14} aria-hidden />
    </Button>
  );
}
