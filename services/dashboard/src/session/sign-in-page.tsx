import { KeyRound } from "lucide-react";
import { type FormEvent, use, useState } from "react";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { DialogContext } from "../ui/dialog-context.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { TextField } from "../ui/fields.tsx";
import { Warning } from "../ui/panels.tsx";
import { NoProject } from "./no-project.tsx";
import { isPerson } from "./person.ts";
import { useSessions } from "./session.tsx";
import { SignInFrame } from "./sign-in-frame.tsx";
import styles from "./sign-in-page.module.css";
import { useSignInMethods, WaysToSignIn } from "./ways-to-sign-in.tsx";

/**
 * The page of a tab without a current session. It offers the other keys of the tab, if there are any. With the code of the
 * operator's link, it signs in.
 */
export function SignInPage({ link }: { link?: string }) {
  const { keys, ended, switchTo } = useSessions();
  const methods = useSignInMethods();
  const hasNoProject = methods?.signed_in === true && !keys.some(({ token }) => isPerson(token));
  return (
    <SignInFrame title="Sign in">
      {ended !== undefined && <Warning>{ended}</Warning>}
      {hasNoProject && link === undefined && <NoProject />}
      {keys.map(({ token, me }) => (
        <Button key={me.key.id} onPress={() => void switchTo(token)}>
          Continue in {me.project.name} with {me.key.name}
        </Button>
      ))}
      <WaysToSignIn methods={methods} link={link} />
      {methods?.key !== false && <SignInForm />}
    </SignInFrame>
  );
}

/**
 * Signs in with a server key or the operator's token. The field is not a password field, because browsers offer to store
 * passwords beyond the tab.
 */
export function SignInForm({ onDone }: { onDone?: () => void }) {
  const { signIn } = useSessions();
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const [isPending, setPending] = useState(false);
  const { markInput } = use(DialogContext);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setPending(true);
    setError(undefined);
    try {
      if (await signIn(token.trim())) onDone?.();
    } catch (failure) {
      setError(failure);
    } finally {
      setPending(false);
    }
  }
  return (
    <form
      className={styles.form}
      onSubmit={(event) => void submit(event)}
      onInput={markInput}
      autoComplete="off"
    >
      <TextField
        label="Server key"
        value={token}
        onChange={setToken}
        autoComplete="off"
        autoFocus
        isCode
        isSecret
        placeholder="hs_…"
        description="Your own server key, or the operator's token. The browser keeps it in this tab only."
      />
      {error !== undefined && <SignInError error={error} />}
      <div className={styles.actions}>
        {onDone !== undefined && <Button onPress={onDone}>Cancel</Button>}
        <Button
          type="submit"
          variant="primary"
          isPending={isPending}
          isDisabled={token.trim() === ""}
        >
          Sign in
        </Button>
      </div>
      <p className={styles.note}>
        <KeyRound size={16} aria-hidden />
        <span>
          Each person uses a key of their own: every change is recorded with the user of the key
          that made it. An operator or a colleague issues keys on the API keys page.
        </span>
      </p>
    </form>
  );
}

function SignInError({ error }: { error: unknown }) {
  if (error instanceof ApiProblem && error.status === 403)
    return (
      <ErrorPanel
        error={
          new AdvisedError(
            "This key cannot manage flags.",
            "The dashboard needs a server key, which begins with hs_.",
          )
        }
      />
    );
  return <ErrorPanel error={error} />;
}
