import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { OrganizationChange, User } from "../api/schema.d.ts";
import { signedInBy } from "../changes/signed-in-by.ts";
import { organizationRoute } from "../operator/operator-queries.ts";
import { Section } from "../operator/section.tsx";
import { useKeySession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { Select } from "../ui/fields.tsx";
import { Filters } from "../ui/page.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import { addressIn, describePeopleChange, peopleActions } from "./describe-people-change.ts";
import type { Projects } from "./grant-sentence.ts";
import styles from "./people.module.css";

type Action = OrganizationChange["action"];

/** Entries that one request reads. */
const pageSize = 20;

function usePeopleLog(action: Action | undefined) {
  const { api, me } = useKeySession();
  const path = { organizationId: me.organization.id };
  return useInfiniteQuery({
    queryKey: ["organization", me.organization.id, "changes", action],
    staleTime: 0,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { limit: pageSize, ...(action && { action }), ...(cursor && { cursor }) };
      return unwrap(api.GET(`${organizationRoute}/changes`, { params: { path, query }, signal }));
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  });
}

const options = Object.entries(peopleActions).map(([value, label]) => ({
  value: value as Action,
  label,
}));

type Props = { users: readonly User[]; projects: Projects };

/** The audit log of the organization's people, for owners. */
export function PeopleLog({ users, projects }: Props) {
  const [action, setAction] = useState<Action>();
  const query = usePeopleLog(action);
  return (
    <Section
      title="Audit log"
      lead="Users, invitations, roles and sign-ins of the organization, the newest first. Changes of flags are on the page History."
    >
      <Filters>
        <Select<Action | "all">
          label="Kind of entry"
          isLabelHidden
          value={action ?? "all"}
          onChange={(chosen) => setAction(chosen === "all" ? undefined : chosen)}
          options={[{ value: "all", label: "All entries" }, ...options]}
        />
      </Filters>
      <QueryView query={query} label="Loading the audit log">
        {({ pages }) => {
          const changes = pages.flatMap((page) => page.changes);
          if (changes.length === 0) return <p className={styles.note}>There are no entries.</p>;
          const addresses = addressesIn(changes, users);
          const nameOf = (id: string) => addresses.get(id) ?? "a deleted user";
          return (
            <ol className={styles.log} aria-label="Audit log of people">
              {changes.map((change) => (
                <Entry key={change.id} {...{ change, nameOf, projects }} />
              ))}
            </ol>
          );
        }}
      </QueryView>
      {query.hasNextPage && (
        <Button onPress={() => void query.fetchNextPage()} isPending={query.isFetchingNextPage}>
          Load older entries
        </Button>
      )}
    </Section>
  );
}

/** Returns the addresses of users by their ids. Entries have those of users that were deleted. */
function addressesIn(changes: readonly OrganizationChange[], users: readonly User[]) {
  const found = changes.flatMap((change) => {
    const address = addressIn(change);
    return change.user_id === null || address === undefined
      ? []
      : [[change.user_id, address] as const];
  });
  return new Map([...found, ...users.map(({ id, email }) => [id, email] as const)]);
}

type EntryProps = {
  change: OrganizationChange;
  nameOf: (userId: string) => string;
  projects: Projects;
};

function Entry({ change, nameOf, projects }: EntryProps) {
  // The provider ended the session, not a person who had signed in.
  const how = change.after?.ended_by === "provider" ? "" : signedInBy(change);
  return (
    <li>
      <span>
        <strong>{change.actor.email}</strong> {describePeopleChange(change, nameOf, projects)}
        {how !== "" && <span className={styles.note}>, {how}</span>}
      </span>
      <span className={styles.note}>
        <Time at={change.changed_at} />
      </span>
    </li>
  );
}
