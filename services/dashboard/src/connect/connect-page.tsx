import type { ApiKey } from "../api/schema.d.ts";
import { useFlags } from "../flags/flag-queries.ts";
import { SnippetPicker } from "../flags/snippet-picker.tsx";
import { IssueKeyButton } from "../keys/issue-key-dialog.tsx";
import { type KeyPlace, useKeys, useOwnPlace } from "../keys/key-queries.ts";
import { sortKeys, works } from "../keys/key-state.ts";
import { nameOfKind } from "../keys/key-table.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Page } from "../ui/page.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./connect-page.module.css";

/** Interval at which the page looks for the first request. The time of a key's last use is a few seconds old anyway. */
const pollMs = 3_000;

/** Keys that the page lists. The page of the keys has them all. */
const maxKeys = 5;

/** The flag of the code while the project has none. */
const exampleFlag = { key: "new-checkout", value_type: "boolean" } as const;

/** Connects an application to the chosen environment: its code, its key, and the arrival of its first request. */
export function ConnectPage() {
  const place = useOwnPlace();
  const { data: flags } = useFlags();
  const { reason, isOffered } = usePermission("issue_keys", place.environment);
  return (
    <Page
      title="Connect an application"
      lead={
        <>
          Your application reads the flags of <bdi>{place.environment.name}</bdi> with this code and
          a key of this environment.
        </>
      }
    >
      <div className={styles.cards}>
        <Card title="Code and key">
          <SnippetPicker flag={flags?.[0] ?? exampleFlag}>
            {(kind) =>
              isOffered && (
                <div>
                  <IssueKeyButton
                    place={place}
                    kind={kind}
                    label={`Create a ${kind} key`}
                    variant="primary"
                    whyNot={reason}
                  />
                </div>
              )
            }
          </SnippetPicker>
        </Card>
        <Card title="First request">
          <FirstRequest place={place} />
        </Card>
      </div>
    </Page>
  );
}

/** The newest keys of applications that work, the newest first. */
const applicationKeys = (keys: readonly ApiKey[]): readonly ApiKey[] => {
  const now = Date.now();
  return sortKeys(keys, now).filter((key) => key.kind !== "server" && works(key, now));
};

/** Follows the newest key until an application uses it. A hidden page does not poll. */
function FirstRequest({ place }: { place: KeyPlace }) {
  const keys = useKeys(place, {
    refetchInterval: ({ state }) =>
      applicationKeys(state.data ?? [])[0]?.last_used_at === null && pollMs,
  });
  return (
    <QueryView query={keys} label="Loading the keys">
      {(all) => {
        const [newest, ...others] = applicationKeys(all);
        return (
          <div className={styles.cards}>
            <p role="status">{statusText(newest)}</p>
            {newest !== undefined && (
              <Table
                label="Keys of applications"
                columns={columns}
                rows={[newest, ...others].slice(0, maxKeys)}
              />
            )}
          </div>
        );
      }}
    </QueryView>
  );
}

function statusText(newest: ApiKey | undefined): string {
  if (newest === undefined) return "No application has a key yet. Create one above.";
  return newest.last_used_at === null
    ? `Waiting for the first request with ${newest.name}…`
    : `The first request with ${newest.name} arrived. The application is connected.`;
}

const columns: readonly Column<ApiKey>[] = [
  { id: "name", header: "Key", cell: ({ name }) => name },
  { id: "kind", header: "Kind", cell: ({ kind }) => nameOfKind[kind] },
  {
    id: "used",
    header: "Last request",
    cell: ({ last_used_at: at }) => (at === null ? "None yet" : <Time at={at} />),
  },
];
