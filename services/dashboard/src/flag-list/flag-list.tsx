import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { CalendarClock } from "lucide-react";
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import {
  type ListedFlag,
  type ListedState,
  stateIn,
  summaryOf,
  toneOf,
  typeLabel,
  valueTypeLabel,
} from "../flags/flag-search.ts";
import { StatesDialog } from "../flags/states-dialog.tsx";
import { useSwitchWarning } from "../flags/use-change-warning.ts";
import { type Toggle, useToggle } from "../flags/use-toggle.ts";
import { switchProposal } from "../proposals/state-proposal.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { usePendingSchedules } from "../schedules/schedule-queries.ts";
import { nextChanges } from "../schedules/timeline.ts";
import { whyNot } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { useCaution } from "../state/caution.tsx";
import { Badge } from "../ui/badge.tsx";
import { Switch } from "../ui/fields.tsx";
import styles from "./flag-list.module.css";
import { ListHead } from "./flag-list-head.tsx";
import { type Selection, useSelection } from "./use-selection.ts";

/** Height of a row in pixels. The style sheet uses the same height. */
const rowHeight = 60;
/** Rows beyond both ends of the window that exist, so that fast scrolling shows no gaps. */
const overscan = 12;
/** Environments whose state a row shows. A project can have 50. */
const maxStates = 3;
/** Tags that a row shows. */
const maxTagsShown = 3;

type FlagListProps = {
  flags: readonly ListedFlag[];
  environment: Environment;
  /** Number of flags without filters, or undefined while it is not read. */
  total: number | undefined;
};

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
  const { toggle, dialog } = useAskedToggle(environment);
  const [opened, open] = useState<ListedFlag>();
  const session = useKeySession();
  const reason = whyNot(session, "change_states", environment);
  const selection = useSelection(flags);
  const maySelect = whyNot(session, "change_project") === undefined && total !== undefined;
  const planned = useNextChanges(environment.id);
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
      data-selectable={maySelect || undefined}
      aria-rowcount={flags.length + 1}
    >
      <ListHead
        shown={flags.length}
        total={total}
        selection={maySelect ? selection : undefined}
        environment={environment}
      />
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
              reason={reason}
              planned={planned.get(flag.id)}
              isSelected={maySelect ? selection.has(flag) : undefined}
              onSelect={selection.choose}
              onToggle={toggle}
              onShowAll={open}
            />
          );
        })}
      </div>
      {dialog}
      {opened !== undefined && (
        <StatesDialog flag={opened} environments={environments} onClose={() => open(undefined)} />
      )}
    </div>
  );
}

/**
 * Returns a function that switches a flag. It asks first in an environment with the mark, before it turns on a flag that
 * SDKs of applications do not support, and before it turns off flags that require the flag.
 */
function useAskedToggle(environment: Environment) {
  const toggle = useToggle();
  const warningOf = useSwitchWarning(environment);
  const { ask, dialog } = useCaution(environment);
  const { change } = useProposing(environment);
  const checked = useRef(new Set<string>());
  const askedToggle = useCallback(
    async (wanted: Toggle) => {
      // A second press during the check would ask, or change the flag, twice.
      if (checked.current.has(wanted.flag.id)) return;
      checked.current.add(wanted.flag.id);
      const warning = await warningOf(wanted.flag, [wanted.enabled]);
      checked.current.delete(wanted.flag.id);
      const { enabled, flag } = wanted;
      const version = stateIn(flag, environment.id)?.version;
      change({
        exception: enabled ? undefined : "off",
        make: () =>
          ask(
            () => questionOf(wanted, warning),
            () => toggle(wanted),
          ),
        proposal: () => ({ ...switchProposal(wanted, { enabled, version }), warning }),
      });
    },
    [ask, change, toggle, warningOf, environment.id],
  );
  return { toggle: askedToggle, dialog };
}

function questionOf({ flag, environment, enabled }: Toggle, warning: string | undefined) {
  const action = `Turn ${enabled ? "on" : "off"}`;
  const state = stateIn(flag, environment.id);
  const after = state === undefined ? "" : summaryOf({ ...state, enabled });
  return {
    title: `Turn ${flag.key} ${enabled ? "on" : "off"} in ${environment.name}?`,
    action,
    changes: [{ label: flag.key, before: state && summaryOf(state), after }],
    warning,
  };
}

/** Returns the next scheduled change of each flag in an environment, in words. */
function useNextChanges(environmentId: string): ReadonlyMap<string, string> {
  const { data } = usePendingSchedules();
  return useMemo(
    () => nextChanges(data ?? [], environmentId, { now: new Date() }),
    [data, environmentId],
  );
}

type RowProps = {
  flag: ListedFlag;
  index: number;
  offset: number;
  environment: Environment;
  others: readonly Environment[];
  /** Why the states cannot be changed. */
  reason: string | undefined;
  /** The next scheduled change. */
  planned: string | undefined;
  /** Undefined if flags cannot be selected. */
  isSelected: boolean | undefined;
  onSelect: Selection["choose"];
  onToggle: (toggle: Toggle) => Promise<void>;
  onShowAll: (flag: ListedFlag) => void;
};

const Row = memo(function Row(props: RowProps) {
  const { flag, index, offset, environment, others, reason, onToggle, planned, isSelected } = props;
  const own = stateIn(flag, environment.id);
  const label = `${flag.key} in ${environment.name}`;
  const summary = own === undefined ? "" : summaryOf(own);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={styles.row}
      style={{ transform: `translateY(${offset}px)` }}
    >
      {isSelected !== undefined && (
        <div role="cell">
          <input
            type="checkbox"
            className={styles.select}
            aria-label={`Select ${flag.key}`}
            checked={isSelected}
            onChange={({ target, nativeEvent }) =>
              props.onSelect(flag.id, target.checked, (nativeEvent as MouseEvent).shiftKey)
            }
          />
        </div>
      )}
      <FlagCell flag={flag} planned={planned} />
      <OthersCell flag={flag} others={others} onShowAll={props.onShowAll} />
      <div role="cell" className={styles.own}>
        <span className={styles.summary} title={summary}>
          {summary}
        </span>
        <Switch
          label={label}
          isLabelHidden
          isSelected={own?.enabled ?? false}
          isDisabled={own === undefined}
          whyNot={reason}
          onChange={(enabled) => void onToggle({ flag, environment, enabled })}
        />
      </div>
    </div>
  );
});

/** The states in the other environments. A dialog shows those for which the row has no room. */
function OthersCell({ flag, others, onShowAll }: Pick<RowProps, "flag" | "others" | "onShowAll">) {
  const hidden = others.length - maxStates;
  return (
    <div role="cell" className={styles.others}>
      <span className={styles.states}>
        {others.slice(0, maxStates).map((other) => (
          <OtherState key={other.id} name={other.name} state={stateIn(flag, other.id)} />
        ))}
      </span>
      {hidden > 0 && (
        <button
          type="button"
          className={styles.more}
          aria-label={`+${hidden} environments of ${flag.key}`}
          onClick={() => onShowAll(flag)}
        >
          +{hidden}
        </button>
      )}
    </div>
  );
}

/** The key, the name and facts about the flag. */
function FlagCell({ flag, planned }: Pick<RowProps, "flag" | "planned">) {
  return (
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
        {planned !== undefined && (
          <Badge tone="accent">
            <CalendarClock size={12} role="img" aria-label="Scheduled:" /> {planned}
          </Badge>
        )}
        {flag.archived_at !== null && <Badge tone="warning">Archived</Badge>}
        {flag.type !== "release" && <Badge>{typeLabel(flag.type)}</Badge>}
        {flag.value_type !== "boolean" && <Badge>{valueTypeLabel(flag.value_type)}</Badge>}
        <span className={styles.nameText}>{flag.name}</span>
        <Labels flag={flag} />
      </span>
    </div>
  );
}

/** The tags and the owner, where the row has room. */
function Labels({ flag: { tags, owner } }: { flag: ListedFlag }) {
  if (tags.length === 0 && owner === null) return null;
  return (
    <span className={styles.labels}>
      {tags.slice(0, maxTagsShown).map((tag) => (
        <Badge key={tag}>{tag}</Badge>
      ))}
      {tags.length > maxTagsShown && <span>+{tags.length - maxTagsShown}</span>}
      {owner !== null && <span className={styles.nameText}>{owner}</span>}
    </span>
  );
}

function OtherState({ name, state }: { name: string; state: ListedState | undefined }) {
  if (state === undefined) return null;
  return (
    <Badge tone={toneOf(state)}>
      <span className={styles.environment}>{name}: </span>
      {state.enabled ? summaryOf(state).toLowerCase() : "off"}
    </Badge>
  );
}
