import { useEffect, useState } from "react";
import { createApi, unwrap } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";
import { confirmSignIn } from "./confirmation.ts";
import { readSignedIn, type SignedIn, signOutPerson } from "./person.ts";

/** A person without a role in a project, who can open no page but may end the sessions. */
export function NoProject() {
  const [signedIn, setSignedIn] = useState<SignedIn>();
  const [error, setError] = useState<unknown>();
  useEffect(() => void readSignedIn().then(setSignedIn), []);
  const signOut = async () => window.location.assign(await signOutPerson());
  const signOutEverywhere = async () => {
    try {
      const api = createApi({}, { onRejected: () => undefined, confirm: confirmSignIn });
      await unwrap(api.DELETE("/api/v1/sessions"));
      window.location.assign("/");
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <>
      <Warning
        action={
          <Button size="small" onPress={() => void signOut()}>
            Sign out
          </Button>
        }
      >
        You are signed in
        {signedIn && (
          <>
            {" "}
            as <bdi>{signedIn.person.email}</bdi>
          </>
        )}
        , but you have no role in any project. Ask an owner of your organization for one, then
        reload this page.
      </Warning>
      {error !== undefined && <ErrorPanel error={error} />}
      <Button variant="quiet" onPress={() => void signOutEverywhere()}>
        Sign out everywhere
      </Button>
    </>
  );
}
