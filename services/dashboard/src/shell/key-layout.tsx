import { Link, Outlet } from "@tanstack/react-router";
import {
  CalendarClock,
  ChartColumn,
  ClipboardCheck,
  Flag,
  GitCompareArrows,
  History,
  KeyRound,
  Layers,
  LogOut,
  UserRound,
  Users,
  Webhook,
} from "lucide-react";
import { useState } from "react";
import { SignInExpiry } from "../account/sign-in-expiry.tsx";
import { usePendingCount } from "../change-requests/request-queries.ts";
import { countText } from "../change-requests/request-status.ts";
import { KeyExpiry } from "../keys/key-expiry.tsx";
import { LiveChanges, LiveIndicator, LostConnection, MuteButton } from "../live/live-changes.tsx";
import { ProposalsProvider } from "../proposals/proposals-provider.tsx";
import { Shortcuts } from "../search/shortcuts.tsx";
import { EnvironmentProvider, useChosen } from "../session/environment.tsx";
import { permissionsOf } from "../session/permissions.ts";
import { isPerson } from "../session/person.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { SignInForm } from "../session/sign-in-page.tsx";
import { protectedAmong } from "../state/protection.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Page } from "../ui/page.tsx";
import { Warning } from "../ui/panels.tsx";
import { AppearanceButton } from "./appearance.tsx";
import { Frame } from "./frame.tsx";
import type { NavigationEntry } from "./navigation.tsx";
import { ScopeNames, ScopeSwitcher } from "./scope-switcher.tsx";
import styles from "./shell.module.css";

const entries: readonly NavigationEntry[] = [
  { to: "/flags", label: "Flags", icon: Flag },
  { to: "/change-requests", label: "Change requests", icon: ClipboardCheck },
  { to: "/audiences", label: "Audiences", icon: Users },
  { to: "/schedules", label: "Schedules", icon: CalendarClock },
  { to: "/compare", label: "Compare", icon: GitCompareArrows },
  { to: "/history", label: "History", icon: History },
  { to: "/webhooks", label: "Webhooks", icon: Webhook },
  { to: "/usage", label: "Usage", icon: ChartColumn },
  { to: "/keys", label: "API keys", icon: KeyRound },
  { to: "/environments", label: "Environments", icon: Layers },
  { to: "/people", label: "People", icon: UserRound },
];

/** Pages without an entry in the navigation. */
const connectPage = { to: "/connect", label: "Connect an application" } as const;
const youPage = { to: "/you", label: "You" } as const;

/** The frame of the pages of a server key: project and environment, pages, and the person. */
export function KeyLayout() {
  const session = useKeySession();
  const { signOut } = useSessions();
  const [isAddingKey, setAddingKey] = useState(false);
  const isOfPerson = isPerson(session.token);
  const { mayUseWebhooks } = permissionsOf(session);
  const isProtected = protectedAmong(session.me.environments) !== undefined;
  const pending = countText(usePendingCount());
  const hidden = [
    mayUseWebhooks ? "" : "/webhooks",
    session.me.roles ? "" : "/people",
    isProtected ? "" : "/change-requests",
  ];
  const permitted = entries
    .filter(({ to }) => !hidden.includes(to))
    .map((entry) => (entry.to === "/change-requests" ? { ...entry, count: pending } : entry));
  return (
    <EnvironmentProvider>
      <LiveChanges>
        <ProposalsProvider>
          <Frame
            entries={permitted}
            scope={<ScopeNames />}
            top={<ScopeSwitcher onAddKey={() => setAddingKey(true)} />}
            banner={
              <>
                <LostConnection />
                <KeyExpiry />
                <SignInExpiry />
              </>
            }
            bottom={
              <>
                <Shortcuts pages={[...permitted, connectPage, ...(isOfPerson ? [youPage] : [])]} />
                <LiveIndicator />
                {isOfPerson && <YouLink email={session.me.user.email} />}
                <div>
                  <MuteButton />
                  <AppearanceButton />
                  <Button variant="quiet" onPress={() => void signOut(session.token)}>
                    <LogOut size={16} aria-hidden /> Sign out
                  </Button>
                </div>
              </>
            }
          >
            <PageInEnvironment />
          </Frame>
        </ProposalsProvider>
        {isAddingKey && (
          <Dialog title="Use another key" onClose={() => setAddingKey(false)}>
            <SignInForm onDone={() => setAddingKey(false)} />
          </Dialog>
        )}
      </LiveChanges>
    </EnvironmentProvider>
  );
}

/** Leads to the page of the person. */
function YouLink({ email }: { email: string }) {
  return (
    <Link
      to="/you"
      className={styles.you ?? ""}
      activeProps={{ className: `${styles.you} ${styles.current}` }}
    >
      <UserRound size={16} aria-hidden />
      <span className={styles.youText}>
        You · <bdi>{email}</bdi>
      </span>
    </Link>
  );
}

/** The page, or a message that its environment does not exist. */
function PageInEnvironment() {
  const chosen = useChosen();
  if (chosen.kind === "unknown") return <MissingEnvironment name={chosen.name ?? "of its key"} />;
  return (
    <>
      {chosen.kind === "deleted" && (
        <Warning>
          The environment <bdi>{chosen.environment.name}</bdi> was deleted. What you entered can no
          longer be saved. Copy what you still need, then choose another environment.
        </Warning>
      )}
      <div className={chosen.environment.caution ? styles.caution : ""}>
        <Outlet />
      </div>
    </>
  );
}

/** Replaces the page, so that nothing is changed in another environment by mistake. */
function MissingEnvironment({ name }: { name: string }) {
  return (
    <Page title="No such environment">
      <Warning>
        This project has no environment <bdi>{name}</bdi>. It may have been renamed or deleted.
        Choose another one in the sidebar.
      </Warning>
    </Page>
  );
}
