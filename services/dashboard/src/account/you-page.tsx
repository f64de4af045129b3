import { KeyRound } from "lucide-react";
import { isPerson, type SignedIn } from "../session/person.ts";
import { useKeySession } from "../session/session.tsx";
import { localTime } from "../ui/dates.ts";
import { Page } from "../ui/page.tsx";
import { Card, EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import styles from "./account.module.css";
import { useOwnSession } from "./account-queries.ts";
import { methodNames } from "./method-names.ts";
import { PasskeysCard } from "./passkeys-card.tsx";
import { SessionsCard } from "./sessions-card.tsx";

/** The signed-in person: the sign-in, sessions and passkeys. */
export function YouPage() {
  const { token } = useKeySession();
  if (!isPerson(token))
    return (
      <Page title="You">
        <EmptyState icon={KeyRound} title="You use a server key">
          This page is for people who sign in without a key.
        </EmptyState>
      </Page>
    );
  return (
    <Page title="You" lead="Your sign-in, in all organizations.">
      <SignInCard />
      <PasskeysCard />
      <SessionsCard />
    </Page>
  );
}

function SignInCard() {
  const query = useOwnSession();
  return (
    <Card title="Sign-in">
      <QueryView query={query} label="Loading the sign-in">
        {(signedIn) => <Facts signedIn={signedIn} />}
      </QueryView>
    </Card>
  );
}

function Facts({ signedIn }: { signedIn: SignedIn }) {
  const { person, organizations } = signedIn;
  const facts = [
    ...(person.name === null ? [] : [["Name", person.name] as const]),
    ["E-mail address", person.email],
    ["Signed in", methodNames[signedIn.signed_in_by]],
    ["Signed in until", localTime(new Date(signedIn.expires_at))],
    ["Last confirmed", localTime(new Date(signedIn.confirmed_at))],
    ...organizations.map(({ name, role }) => ["Organization", roleIn(name, role)] as const),
  ] as const;
  return (
    <dl className={styles.facts}>
      {facts.map(([label, value]) => (
        <div key={`${label} ${value}`}>
          <dt>{label}</dt>
          <dd>
            <bdi>{value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

const roleIn = (name: string, role: string | null) =>
  role === null ? `${name}, with roles in projects` : `${name}, as ${role}`;
