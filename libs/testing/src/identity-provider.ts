import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import Provider, { type Configuration, interactionPolicy } from "oidc-provider";

/** A real OpenID Connect provider, whose login page signs in the account that a test has chosen. */
export const client = { id: "halyard", secret: "a client's secret" };

type Account = { accountId: string; claims: Record<string, unknown> };

/** The addresses of the client that the provider accepts. */
type Redirects = { callback: string; signOut: string; logout: string };

export async function startIdentityProvider(redirects: Redirects) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "provider", alg: "RS256", use: "sig" };
  const state = { account: { accountId: "ada", claims: {} } as Account };
  const configuration: Configuration = {
    ...configurationOf(redirects),
    jwks: { keys: [key] },
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...state.account.claims }),
    }),
  };
  const provider = new Provider(url, configuration);
  const respond = provider.callback();
  server.on("request", (request, response) => void handle(request, response));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!request.url?.startsWith("/login/")) return respond(request, response);
    const { prompt, session, grantId, params } = await provider.interactionDetails(
      request,
      response,
    );
    if (prompt.name !== "consent") {
      const login = { accountId: state.account.accountId };
      const result = { login, ...(prompt.name === "select_account" && { select_account: {} }) };
      return provider.interactionFinished(request, response, result);
    }
    const grant =
      (grantId === undefined ? undefined : await provider.Grant.find(grantId)) ??
      new provider.Grant({
        accountId: session?.accountId ?? "",
        clientId: String(params.client_id),
      });
    grant.addOIDCScope(String(params.scope));
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result, {
      mergeWithLastSubmission: true,
    });
  }

  return {
    url,
    state,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Also lets a client request that the person chooses an account. */
function policy() {
  const prompts = interactionPolicy.base();
  const selection = new interactionPolicy.Prompt({ name: "select_account", requestable: true });
  prompts.add(selection, 0);
  return prompts;
}

const configurationOf = ({ callback, signOut, logout }: Redirects): Configuration => ({
  clients: [
    {
      client_id: client.id,
      client_secret: client.secret,
      redirect_uris: [callback],
      post_logout_redirect_uris: [signOut],
      backchannel_logout_uri: logout,
      backchannel_logout_session_required: true,
    },
  ],
  cookies: { keys: ["a key for tests"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  features: {
    devInteractions: { enabled: false },
    backchannelLogout: { enabled: true },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (context, form) => {
        context.body = form;
      },
    },
  },
  // The provider's own agent rejects loopback addresses.
  fetch(target, options) {
    const { dispatcher: _agent, ...rest } = options ?? {};
    return fetch(target, rest);
  },
  ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  interactions: { policy: policy(), url: (_, { uid }) => `/login/${uid}` },
});
