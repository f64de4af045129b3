import { Outlet, useParams } from "@tanstack/react-router";
import { SearchX } from "lucide-react";
import { createContext, use, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import { useEnvironment } from "../session/environment.tsx";
import { CautionBadge } from "../state/caution.tsx";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Badge } from "../ui/badge.tsx";
import { ButtonLink } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { useLeaveGuard } from "../ui/leave-guard.ts";
import { LinkedText } from "../ui/linked-text.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { TabLinks } from "../ui/tabs.tsx";
import styles from "./flag-page.module.css";
import { useFlag } from "./flag-queries.ts";
import { type ListedFlag, typeLabel, valueTypeLabel } from "./flag-search.ts";

export type FlagInPage = { flag: ListedFlag; environment: Environment };

const FlagContext = createContext<FlagInPage | undefined>(undefined);

/** Returns the flag and the environment of the page, in its tabs. */
export function useFlagInPage(): FlagInPage {
  const found = use(FlagContext);
  if (found === undefined) throw new Error("this component is only in tabs of a flag's page");
  return found;
}

/** A flag in the chosen environment: targeting, schedule, history and settings are its tabs. */
export function FlagPage() {
  const { flagKey } = useParams({ from: "/flags/$flagKey" });
  const query = useFlag(flagKey);
  return (
    <div>
      <QueryView query={query} label={`Loading ${flagKey}`}>
        {(flag) => <FoundFlag key={flagKey} flagKey={flagKey} found={flag} />}
      </QueryView>
    </div>
  );
}

/** The page of a flag, or a message that it does not exist. A deleted flag stays visible while it has unsaved content. */
function FoundFlag({ flagKey, found }: { flagKey: string; found: ListedFlag | null }) {
  const { environment } = useEnvironment();
  const isHeld = useLeaveGuard().unsaved !== undefined;
  const [last, setLast] = useState(found);
  if (found !== null && found !== last) setLast(found);
  const flag = found ?? (isHeld ? last : null);
  if (flag === null) return <MissingFlag flagKey={flagKey} />;
  return (
    <FlagContext value={{ flag, environment }}>
      {found === null && (
        <Warning>
          The flag {flagKey} was deleted. What you entered can no longer be saved. Copy what you
          still need, then leave this page.
        </Warning>
      )}
      <LoadedFlag flag={flag} environment={environment} />
    </FlagContext>
  );
}

function LoadedFlag({ flag, environment }: FlagInPage) {
  const params = { flagKey: flag.key };
  const isTyped = flag.value_type !== "boolean";
  return (
    <Page
      title={flag.name}
      back={{ link: { to: "/flags" }, label: "Flags" }}
      facts={
        <>
          <code>{flag.key}</code>
          <CopyButton text={flag.key} label="Copy the key" />
          <Badge>{typeLabel(flag.type)}</Badge>
          {isTyped && <Badge>{valueTypeLabel(flag.value_type)}</Badge>}
          <Badge tone="accent">{environment.name}</Badge>
          {environment.protected !== null && <ProtectedBadge />}
          {environment.caution && <CautionBadge />}
          {flag.archived_at !== null && <Badge tone="warning">Archived</Badge>}
          {flag.tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
          {flag.owner !== null && <span>Owner: {flag.owner}</span>}
        </>
      }
    >
      {flag.description !== "" && (
        <p className={styles.description}>
          <LinkedText text={flag.description} />
        </p>
      )}
      <TabLinks
        label={`Views of ${flag.key}`}
        tabs={[
          { label: "Targeting", link: { to: "/flags/$flagKey", params } },
          ...(isTyped ? [variationsTab(flag.key)] : []),
          { label: "Schedule", link: { to: "/flags/$flagKey/schedule", params } },
          { label: "History", link: { to: "/flags/$flagKey/history", params } },
          { label: "Settings", link: { to: "/flags/$flagKey/settings", params } },
        ]}
      />
      <Outlet />
    </Page>
  );
}

const variationsTab = (flagKey: string) =>
  ({
    label: "Variations",
    link: { to: "/flags/$flagKey/variations", params: { flagKey } },
  }) as const;

function MissingFlag({ flagKey }: { flagKey: string }) {
  return (
    <Page title="No such flag">
      <EmptyState
        icon={SearchX}
        title={`There is no flag ${flagKey}`}
        action={<ButtonLink to="/flags">All flags</ButtonLink>}
      >
        It may have been deleted. The history of the project keeps what it was.
      </EmptyState>
    </Page>
  );
}
