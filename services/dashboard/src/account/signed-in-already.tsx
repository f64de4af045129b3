import { Navigate } from "@tanstack/react-router";
import { pathIn, problemIn } from "../session/sign-in-problem.ts";
import { Button } from "../ui/button.tsx";
import { Page } from "../ui/page.tsx";
import { Warning } from "../ui/panels.tsx";

/** The sign-in page for a tab that has a session: why a confirmation at the identity provider failed. */
export function SignedInAlready() {
  const { search } = window.location;
  const problem = problemIn(search);
  if (problem === undefined) return <Navigate to="/flags" replace />;
  return (
    <Page title="Not confirmed">
      <Warning
        action={<Button onPress={() => window.location.replace(pathIn(search))}>Continue</Button>}
      >
        {problem}
      </Warning>
    </Page>
  );
}
