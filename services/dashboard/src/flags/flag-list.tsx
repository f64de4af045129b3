import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import { permissionsOf } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Switch } from "../ui/fields.tsx";
import { count } from "../ui/numbers.ts";
import styles from "./flag-list.module.css";
import {
  type ListedFlag,
  type ListedState,
  stateIn,
  summaryOf,
  toneOf,
  typeLabel,
} from "./flag-search.ts";
import { StatesDialog } from "./states-dialog.tsx";
import { useToggle } from "./use-toggle.ts";

/** Height of a row in pixels. The style sheet uses the same height. */
const rowHeight = 60;
/** Rows beyond both ends of the window that exist, so that fast scrolling shows no gaps. */
const overscan = 12;
/** Environments whose state a row shows. A project can have 50. */
const maxStates = 3;

type FlagListProps = { flags: readonly ListedFlag[]; environment: Environment; total: number };

/** The list renders only the rows near the window, so that thousands of flags scroll smoothly. */
export function FlagList({ flags, environment, total }: FlagListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  useLayoutEffect(() => setScrollMargin(frame.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: flags.length,
    estimateSize: () => rowHeight,
    overscan,
    scrollMargin,
    getItemKey: (index) => flags[index]?.id ?? index,
  });
  const toggle = useToggle();
  const [opened, open] = useState<ListedFlag>();
  const session = useKeySession();
  const mayChange = permissionsOf(session).mayChange(environment.id);
  const { environments } = session.me;
  // Rows are rendered again only if their properties change, so these must stay the same while the list scrolls.
  const others = useMemo(
    () => environments.filter(({ id }) => id !== environment.id),
    [environments, environment.id],
  );
  return (
    <div
      className={styles.frame}
      ref={frame}
      role="table"
      aria-label="Flags"
      aria-rowcount={flags.length + 1}
    >
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} className={styles.head}>
          <span role="columnheader">{countText(flags.length, total)}</span>
          <span role="columnheader" className={styles.others}>
            Other environments
          </span>
          <span role="columnheader" className={styles.own}>
            {environment.name}
          </span>
        </div>
      </div>
      <div role="rowgroup" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const flag = flags[index];
          if (flag === undefined) return null;
          return (
            <Row
              key={key}
              flag={flag}
              index={index}
              offset={start - scrollMargin}
              environment={environment}
              others={others}
              mayChange={mayChange}
              onToggle={toggle}
              onShowAll={open}
            />
          );
        })}
      </div>
      {opened !== undefined && (
        <StatesDialog flag={opened} environments={environments} onClose={() => open(undefined)} />
      )}
    </div>
  );
}

function countText(shown: number, total: number): string {
  const all = total === 1 ? "1 flag" : `${count(total)} flags`;
  return shown === total ? all : `${count(shown)} of ${all}`;
}

type RowProps = {
  flag: ListedFlag;
  index: number;
  offset: number;
  environment: Environment;
  others: readonly Environment[];
  mayChange: boolean;
  onToggle: (toggle: { flag: ListedFlag; environment: Environment; enabled: boolean }) => void;
  onShowAll: (flag: ListedFlag) => void;
};

const Row = memo(function Row(props: RowProps) {
  const { flag, index, offset, environment, others, mayChange, onToggle, onShowAll } = props;
  const own = stateIn(flag, environment.id);
  const label = `${flag.key} in ${environment.name}`;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={styles.row}
      style={{ transform: `translateY(${offset}px)` }}
    >
      <div role="cell" className={styles.flag}>
        <Link
          to="/flags/$flagKey"
          params={{ flagKey: flag.key }}
          className={styles.key ?? ""}
          title={`${flag.key}: ${flag.name}`}
          preload={false}
        >
          {flag.key}
        </Link>
        <span className={styles.name}>
          {flag.type !== "release" && <Badge>{typeLabel(flag.type)}</Badge>}
          <span className={styles.nameText}>{flag.name}</span>
        </span>
      </div>
      <div role="cell" className={styles.others}>
        <span className={styles.states}>
          {others.slice(0, maxStates).map((other) => (
            <OtherState key={other.id} name={other.name} state={stateIn(flag, other.id)} />
          ))}
        </span>
        {others.length > maxStates && (
          <button
            type="button"
            className={styles.more}
            aria-label={`+${others.length - maxStates} environments of ${flag.key}`}
            onClick={() => onShowAll(flag)}
          >
            +{others.length - maxStates}
          </button>
        )}
      </div>
      <div role="cell" className={styles.own}>
        <span className={styles.summary}>{own === undefined ? "" : summaryOf(own)}</span>
        <Switch
          label={label}
          isLabelHidden
          isSelected={own?.enabled ?? false}
          isDisabled={!mayChange || own === undefined}
          onChange={(enabled) => onToggle({ flag, environment, enabled })}
        />
      </div>
    </div>
  );
});

function OtherState({ name, state }: { name: string; state: ListedState | undefined }) {
  if (state === undefined) return null;
  return (
    <Badge tone={toneOf(state)}>
      <span className={styles.environment}>{name}: </span>
      {state.enabled ? summaryOf(state).toLowerCase() : "off"}
    </Badge>
  );
}
