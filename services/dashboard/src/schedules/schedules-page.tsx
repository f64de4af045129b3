import { getLocalTimeZone } from "@internationalized/date";
import { CalendarClock, SearchX } from "lucide-react";
import { useState } from "react";
import type { Schedule } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { useFlags } from "../flags/flag-queries.ts";
import { whyNot } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { Button, ButtonLink } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { SearchField, Select } from "../ui/fields.tsx";
import { useKeptFocus } from "../ui/kept-focus.ts";
import { Filters, Page } from "../ui/page.tsx";
import { Card, EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useNow } from "../ui/time.tsx";
import { ClearScheduleDialog } from "./clear-schedule-dialog.tsx";
import { useEndedSchedules, usePendingSchedules } from "./schedule-queries.ts";
import {
  comingEntries,
  endedEntries,
  filterSchedules,
  type TimelineEntry,
  type TimelineFilter,
} from "./timeline.ts";
import { TimelineList, type TimelineNames } from "./timeline-list.tsx";

/** The upcoming and the past scheduled changes of the project. */
export function SchedulesPage() {
  const pending = usePendingSchedules();
  const ended = useEndedSchedules();
  return (
    <Page
      title="Schedules"
      lead={`Planned changes of flags in all environments. Times are in your time zone (${getLocalTimeZone()}) and in UTC.`}
    >
      <QueryView query={pending} label="Loading the schedules">
        {(coming) => (
          <QueryView query={ended} label="Loading the schedules">
            {({ pages }) => (
              <Timelines
                coming={coming}
                recent={pages.flatMap(({ schedules }) => schedules)}
                onOlder={ended.hasNextPage ? () => void ended.fetchNextPage() : undefined}
              />
            )}
          </QueryView>
        )}
      </QueryView>
    </Page>
  );
}

/** Changes that a timeline shows before it offers more. */
const firstShown = 50;

type TimelinesProps = {
  coming: readonly Schedule[];
  recent: readonly Schedule[];
  onOlder: (() => void) | undefined;
};

function Timelines({ coming, recent, onOlder }: TimelinesProps) {
  const { me } = useKeySession();
  const [filter, setFilter] = useState<TimelineFilter>({ text: "", environmentId: undefined });
  const flags = useFlags();
  const keys = new Map(flags.data?.map(({ id, key }) => [id, key]));
  const flagKey = (id: string) => keys.get(id);
  const matching = (schedules: readonly Schedule[]) => filterSchedules(schedules, filter, flagKey);
  const next = comingEntries(matching(coming));
  const done = endedEntries(matching(recent));
  const shown = [...next.slice(0, firstShown), ...done.slice(0, firstShown)];
  const person = usePeople(
    shown.flatMap(({ schedule: { created_by, cancelled_by } }) =>
      [created_by, cancelled_by ?? []].flat(),
    ),
  );
  const names: TimelineNames = {
    flagKey,
    environment: (id) => me.environments.find((known) => known.id === id)?.name,
    person,
  };
  if (coming.length === 0 && recent.length === 0) return <NoSchedules />;
  return (
    <>
      <ScheduleFilters filter={filter} onChange={setFilter} />
      <Coming entries={next} names={names} isFiltered={next.length === 0 && coming.length > 0} />
      {done.length > 0 && <Done entries={done} names={names} onOlder={onOlder} />}
    </>
  );
}

type ScheduleFiltersProps = { filter: TimelineFilter; onChange: (filter: TimelineFilter) => void };

function ScheduleFilters({ filter, onChange }: ScheduleFiltersProps) {
  const { me } = useKeySession();
  return (
    <Filters>
      <SearchField
        label="Search schedules by the key of the flag"
        placeholder="Search by flag"
        value={filter.text}
        onChange={(text) => onChange({ ...filter, text })}
      />
      <Select
        label="Environment of the schedules"
        isLabelHidden
        value={filter.environmentId ?? "all"}
        onChange={(id) => onChange({ ...filter, environmentId: id === "all" ? undefined : id })}
        options={[
          { value: "all", label: "All environments" },
          ...me.environments.map(({ id, name }) => ({ value: id, label: name })),
        ]}
      />
    </Filters>
  );
}

type SectionProps = { entries: readonly TimelineEntry[]; names: TimelineNames };

function Coming({ entries, names, isFiltered }: SectionProps & { isFiltered: boolean }) {
  const session = useKeySession();
  const [limit, setLimit] = useState(firstShown);
  const [clearing, setClearing] = useState<TimelineEntry>();
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const environment = session.me.environments.find(
    ({ id }) => id === clearing?.schedule.environment_id,
  );
  const flagId = clearing?.schedule.flag_id ?? "";
  const frame = useKeptFocus(`${entries.length}`);
  const clearOf = (entry: TimelineEntry) => {
    if (names.flagKey(entry.schedule.flag_id) === undefined) return undefined;
    const { environment_id: id } = entry.schedule;
    const where = { id, name: names.environment(id) ?? "this environment" };
    const reason = whyNot(session, "change_states", where);
    if (reason !== undefined && session.me.roles === undefined) return undefined;
    return { clear: () => setClearing(entry), whyNot: reason };
  };
  return (
    <Card title="Coming">
      <div ref={frame} tabIndex={-1}>
        {entries.length === 0 ? (
          <EmptyState icon={isFiltered ? SearchX : CalendarClock} title="Nothing is coming">
            {isFiltered
              ? "No schedule matches. Change the search or the environment."
              : "Open a flag and choose Schedule to turn it on or off at a time."}
          </EmptyState>
        ) : (
          <TimelineList
            label="Coming"
            entries={entries.slice(0, limit)}
            reader={reader}
            names={names}
            isComing
            onClear={clearOf}
          />
        )}
        {entries.length > limit && (
          <Button onPress={() => setLimit(limit * 2)}>Show more of {entries.length}</Button>
        )}
        {clearing !== undefined && environment !== undefined && (
          <ClearScheduleDialog
            place={{ flag: { id: flagId, key: names.flagKey(flagId) ?? "" }, environment }}
            schedule={clearing.schedule}
            onClose={() => setClearing(undefined)}
          />
        )}
      </div>
    </Card>
  );
}

function Done({ entries, names, onOlder }: SectionProps & { onOlder: (() => void) | undefined }) {
  const [limit, setLimit] = useState(firstShown);
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const more = () => {
    setLimit(limit + firstShown);
    if (entries.length <= limit + firstShown) onOlder?.();
  };
  return (
    <Card title="Recently done">
      <TimelineList
        label="Recently done"
        entries={entries.slice(0, limit)}
        reader={reader}
        names={names}
      />
      {(entries.length > limit || onOlder !== undefined) && (
        <Button onPress={more}>Show older</Button>
      )}
    </Card>
  );
}

function NoSchedules() {
  const code = curl(
    "/api/v1/flags/$FLAG_ID/environments/$ENVIRONMENT_ID/schedule",
    '{"enable_at":"2099-01-31T09:00:00Z","disable_at":"2099-01-31T18:00:00Z"}',
  );
  return (
    <EmptyState
      icon={CalendarClock}
      title="Nothing is scheduled"
      action={<ButtonLink to="/flags">Choose a flag</ButtonLink>}
      examples={<CodeBlock title="Or schedule over the API" code={code} />}
    >
      A schedule turns a flag on or off at a time, in one environment. Open a flag and choose
      Schedule.
    </EmptyState>
  );
}
