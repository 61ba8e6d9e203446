/** The screens: pages for people over the operations of the console. What they do needs no script; where there is one, it is quicker. */
import { isBoom } from '@hapi/boom';
import type { Lifecycle, Request, ResponseObject, ResponseToolkit, Server } from '@hapi/hapi';
import { systemClock } from '../../../lib/clock.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { STATUS } from '../../errors.ts';
import { noteArrival } from '../../in-time.ts';
import { logFailure, logTags } from '../../log-and-events.ts';
import { READABLE_COOKIES } from '../../route-parts.ts';
import { addAssets, contentPolicy } from '../../web-page.ts';
import { performerOf } from '../handlers.ts';
import type { OperationName } from '../operations.ts';
import { callerIn, isAuthorized, operationsOf, type ScreenSettings, type Settings } from '../options.ts';
import { readingInTime } from '../reading.ts';
import { isFromHere, LedFromElsewhere } from '../request-site.ts';
import { auditScreen } from './audit.ts';
import { screenAssets } from './browser-files.ts';
import { deliveriesScreen } from './deliveries.ts';
import { exportersScreen } from './exporters.ts';
import { type FirstStep, nextStep, OVERVIEW_PATH } from './first-steps.ts';
import { FORM_COOKIE, formCookie, formSecrets, isFormToken, newFormSecret, TOKEN_FIELD } from './form-tokens.ts';
import { keysScreen } from './keys.ts';
import { errorText, languageFor, languagesOf, type Texts } from './languages.ts';
import { type LivePart, LiveStreams } from './live-streams.ts';
import { overviewScreen } from './overview.ts';
import { type Frame, type Page, Renderer } from './renderer.ts';
import { FailedOnTheWay, type Screen, type ScreenRoute, type Visit } from './screen.ts';

const USE = 'admin-console options: screens';
const MAX_FORM = 1024 * 1024;
const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * Adds the pages of the parts that the system has, below the prefix of the options.
 *
 * @throws ScanwireError `MISCONFIGURED` without one of the packages that pages load.
 */
export function addScreens(server: Server, settings: Settings & { readonly screens: ScreenSettings }): void {
    const { prefix } = settings.screens;
    const shown = new Screens(server, settings);
    addAssets(server, screenAssets(prefix, USE));
    server.route({ method: 'GET', path: prefix === '' ? '/' : prefix, options: shown.options('GET'), handler: shown.home });
    for (const route of shown.screens.flatMap(({ routes }) => routes)) {
        server.route({
            method: route.method,
            path: prefix + route.path,
            options: shown.options(route.method),
            handler: shown.handler(route),
        });
    }
    for (const part of shown.screens.flatMap(({ live = [] }) => live)) {
        server.route({ method: 'GET', path: prefix + part.path, options: shown.options('GET', true), handler: shown.stream(part) });
    }
    server.ext([
        { type: 'onPreStart', method: () => shown.live.begin() },
        // A stream that stays would keep the server from stopping.
        { type: 'onPreStop', method: () => shown.live.end() },
    ]);
}

class Screens {
    readonly live: LiveStreams;
    readonly screens: readonly Screen[];
    readonly #settings: Settings & { readonly screens: ScreenSettings };
    readonly #renderer: Renderer;
    readonly #operations: readonly OperationName[];
    readonly #base: string;
    readonly #languages: readonly [Texts, ...Texts[]];
    readonly #isSecure: boolean;
    readonly #next: (visit: Visit) => Promise<FirstStep | null> = nextStep();
    readonly #headers: Readonly<Record<string, string>>;

    constructor(server: Server, settings: Settings & { readonly screens: ScreenSettings }) {
        const { screens } = settings;
        this.#settings = settings;
        this.#languages = languagesOf(screens.texts);
        this.#operations = operationsOf(settings);
        const all: readonly (readonly [OperationName, Screen])[] = [
            ['diagnose', overviewScreen()],
            ['listKeys', keysScreen],
            ['listExporters', exportersScreen],
            ['listDeliveries', deliveriesScreen],
            ['listAudit', auditScreen],
        ];
        this.screens = all.flatMap(([needed, screen]) => (this.#operations.includes(needed) ? [screen] : []));
        this.#renderer = new Renderer(Object.assign({}, ...this.screens.map(({ templates }) => templates)));
        this.#base = `${server.realm.modifiers.route.prefix ?? ''}${screens.prefix}`;
        this.live = new LiveStreams({
            onError: (error) => server.log([...logTags('admin-console', settings.instance), 'error'], error as Error),
        });
        this.#isSecure = screens.secure ?? server.info.protocol === 'https';
        this.#headers = {
            'content-security-policy': contentPolicy({ formAction: "'self'", frameAncestors: screens.frameAncestors }),
            // With no referrer at all browsers leave out the origin as well.
            'referrer-policy': 'same-origin',
            'x-content-type-options': 'nosniff',
            'cross-origin-opener-policy': 'same-origin',
        };
    }

    /**
     * Of a route: who may use it, and what it takes.
     *
     * @param goesOn A page is to be there in time; what a form does may take longer, and a stream looks again and again.
     */
    options(method: 'GET' | 'POST', goesOn = method === 'POST'): object {
        const { auth } = this.#settings;
        const refuse: Lifecycle.Method = (request, h) => this.#refusal(request, h, 400, ({ unreadable }) => unreadable);
        return {
            tags: ['admin-console', 'screens'],
            auth: { strategies: [auth], mode: 'required' },
            cors: false,
            cache: { otherwise: 'no-store' },
            state: READABLE_COOKIES,
            ext: {
                ...(!goesOn && { onPreAuth: { method: noteArrival } }),
                onPostAuth: { method: this.#authorized },
                onPreResponse: { method: this.#guarded },
            },
            ...(method === 'POST' && {
                payload: { parse: false, output: 'data', allow: [FORM_TYPE], maxBytes: MAX_FORM, failAction: refuse },
            }),
        };
    }

    readonly home: Lifecycle.Method = (_, h) => h.redirect(this.#base + (this.screens[0]?.path ?? '/'));

    handler(route: ScreenRoute): Lifecycle.Method {
        return async (request, h) => {
            const form = new URLSearchParams(route.method === 'POST' ? String(request.payload ?? '') : '');
            if (route.method === 'POST' && !this.#isOwn(request, form)) {
                return this.#refusal(request, h, 403, ({ foreignForm }) => foreignForm, backOf(request));
            }

            try {
                const visit = await this.#visit(request, form);
                const answer = await route.answer(visit);
                return 'to' in answer
                    ? h.redirect(this.#base + answer.to).code(303)
                    : await this.#page(answer, request, h, await this.#nextStep(answer, visit, request));
            } catch (error) {
                return await this.#failure(error, request, h);
            }
        };
    }

    /** Of what a part of a page shows, for as long as whoever asks may see it. */
    stream(part: LivePart): Lifecycle.Method {
        return async (request, h) => {
            const visit = await this.#visit(request, new URLSearchParams());
            const topic = {
                key: JSON.stringify([part.path, visit.params, visit.owner, String(visit.query), visit.texts.locale]),
                owner: visit.owner,
                look: async (seen: string | null) => {
                    const now = systemClock();
                    const view = await part.look({ ...visit, now }, seen);
                    const frame = { ...this.#frame(request, now), secret: '', nextStep: null };
                    return view && { seen: view.seen, html: await this.#renderer.render({ ...view, title: '' }, frame) };
                },
            };
            const stream = this.live.open(topic, () => this.#maySee(request, visit));
            // Compressed events would come when there are enough of them.
            const headers = { 'content-encoding': 'identity', 'x-accel-buffering': 'no' };
            return stream === null
                ? await this.#refusal(request, h, 503, ({ tooMany }) => tooMany)
                : Object.entries(headers).reduce(
                      (response, [name, value]) => response.header(name, value),
                      h.response(stream).type('text/event-stream'),
                  );
        };
    }

    /** Asked as if the request came now: whoever is somebody else by then may not. */
    async #maySee(request: Request, { owner }: Visit): Promise<boolean> {
        const { auth, authorize } = this.#settings;
        try {
            Object.assign(request.auth, await request.server.auth.test(auth as string, request));
            return (await authorize(request)) === true && ((await callerIn(request, this.#settings)).owner ?? null) === owner;
        } catch (error) {
            // What is no error is the answer that leads to the sign-in, which holds the cookies of the request.
            if (error instanceof Error && !isBoom(error)) {
                logFailure(request, 'admin-console', error);
            }
            return false;
        }
    }

    #frame(request: Request, now: Date): Omit<Frame, 'secret' | 'nextStep'> {
        const path = this.#shownIn(request);
        const { signOut = null } = this.#settings.screens;
        const texts = this.#textsFor(request);
        const screens = this.screens.map((screen) => ({ path: screen.path, title: screen.title(texts) }));
        return { base: this.#base, screens, path, signOut, now, texts };
    }

    /** Path of the screen that the page is of, below the base; empty for one of none. */
    #shownIn(request: Request): string {
        const at = request.path.slice(this.#base.length);
        return this.screens.find((screen) => at === screen.path || at.startsWith(`${screen.path}/`))?.path ?? '';
    }

    #textsFor({ headers }: Request): Texts {
        const wanted: unknown = headers['accept-language'];
        return languageFor(this.#languages, typeof wanted === 'string' ? wanted : '');
    }

    async #visit(request: Request, form: URLSearchParams): Promise<Visit> {
        const caller = await callerIn(request, this.#settings);
        return {
            params: request.params as Visit['params'],
            query: request.url.searchParams,
            form,
            now: systemClock(),
            texts: this.#textsFor(request),
            scripted: request.headers['hx-request'] === 'true',
            owner: caller.owner ?? null,
            offers: (operation) => this.#operations.includes(operation),
            perform: readingInTime(request, performerOf(this.#settings.system, { ...caller, byHand: true })),
        };
    }

    #isOwn(request: Request, form: URLSearchParams): boolean {
        const token = form.get(TOKEN_FIELD) ?? '';
        const action = request.path.slice(this.#base.length);
        return isFromHere(request) && formSecrets(request).some((secret) => isFormToken(token, secret, action));
    }

    /** What its own page and the overview say need not be said there again, nor lead away from a form that is refused. */
    async #nextStep({ status = 200 }: Page, visit: Visit, request: Request): Promise<FirstStep | null> {
        const at = request.path.slice(this.#base.length);
        if (status >= 400 || at === OVERVIEW_PATH) {
            return null;
        }
        try {
            const step = await this.#next(visit);
            return step?.to === at ? null : step;
        } catch (error) {
            // The page itself can be shown.
            logFailure(request, 'admin-console', error);
            return null;
        }
    }

    async #page(page: Page, request: Request, h: ResponseToolkit, nextStep: FirstStep | null = null): Promise<ResponseObject> {
        const kept = formSecrets(request).at(-1);
        const secret = kept ?? newFormSecret();
        const frame = { ...this.#frame(request, systemClock()), secret, nextStep };
        const response = h
            .response(await this.#renderer.render(page, frame))
            .type('text/html; charset=utf-8')
            .code(page.status ?? 200);
        return kept === undefined ? response.state(FORM_COOKIE, secret, formCookie(this.#base || '/', this.#isSecure)) : response;
    }

    async #failure(failure: unknown, request: Request, h: ResponseToolkit): Promise<ResponseObject> {
        const [error, back] = failure instanceof FailedOnTheWay ? [failure.cause, this.#base + failure.to] : [failure, backOf(request)];
        if (error instanceof ScanwireError && STATUS[error.code] < 500) {
            return await this.#refusal(request, h, STATUS[error.code], error, back);
        }

        if (error instanceof LedFromElsewhere) {
            return await this.#refusal(request, h, 403, ({ foreignLink }) => foreignLink, this.#base + this.#shownIn(request));
        }

        logFailure(request, 'admin-console', error);
        const status = error instanceof ScanwireError ? STATUS[error.code] : 500;
        return await this.#refusal(request, h, status, error instanceof ScanwireError ? error : ({ failed }) => failed, back);
    }

    async #refusal(
        request: Request,
        h: ResponseToolkit,
        status: number,
        why: ScanwireError | ((refusals: Texts['refusals']) => string),
        back: string | null = null,
    ): Promise<ResponseObject> {
        const texts = this.#textsFor(request);
        const data = { message: why instanceof ScanwireError ? errorText(why, texts) : why(texts.refusals), back };
        const page = await this.#page({ template: 'refusal', title: texts.refusals.title, data, status }, request, h);
        return page.takeover();
    }

    readonly #authorized: Lifecycle.Method = async (request, h) =>
        (await isAuthorized(request, this.#settings)) ? h.continue : await this.#refusal(request, h, 403, ({ forbidden }) => forbidden);

    /** Every answer, also that of who is not signed in, tells the browser what it must not do with it. */
    readonly #guarded: Lifecycle.Method = ({ response }, h) => {
        Object.assign('isBoom' in response ? response.output.headers : response.headers, this.#headers);
        return h.continue;
    };
}

/** Where the form is that was sent; to load the path of each leads there. */
function backOf({ method, path }: Request): string | null {
    return method === 'post' ? path : null;
}
