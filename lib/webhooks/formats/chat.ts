import type { Format, FormatEvent, FormatSettings } from './format.ts';
import { type Summary, summaryOf, truncated } from './summary.ts';

/*
 * Messages for people. What an event says is never markup: a title could else notify a whole channel or hide where a link leads. The
 * limits are the vendors', of Slack in characters after escaping, of Teams 28 KB for the whole message.
 */

const JSON_TYPE = 'application/json; charset=UTF-8';

const SLACK_HEADER = 150;
const SLACK_SECTION = 3000;
const SLACK_FIELD = 2000;

type Block = Readonly<Record<string, unknown>>;

/** A message of a Slack incoming webhook. */
export const slack: Format = {
    name: 'slack',
    contentType: JSON_TYPE,
    make(event, { vendor }) {
        const summary = summaryOf(event);
        const plain = (text: string, max: number): Block => ({ type: 'plain_text', text: slackText(text, max), emoji: false });
        const fields = summary.facts.map(([label, value]) => plain(`${label}\n${value}`, SLACK_FIELD));
        const blocks: readonly (Block | null)[] = [
            { type: 'header', text: plain(summary.title, SLACK_HEADER) },
            summary.text === null ? null : { type: 'section', text: plain(summary.text, SLACK_SECTION) },
            fields.length === 0 ? null : { type: 'section', fields },
            slackLink(summary.link, vendor),
            { type: 'context', elements: [plain(footOf(event, summary), SLACK_FIELD)] },
        ];
        // the text is shown where blocks cannot be, as in a notification
        return { body: JSON.stringify({ text: slackText(summary.title, SLACK_HEADER), blocks: blocks.filter((block) => block !== null) }) };
    },
};

/** Null for a link that is too long once its ampersands are escaped: one that is cut off would lead elsewhere. */
function slackLink(link: string | null, vendor: string): Block | null {
    const text = link === null ? null : `<${slackText(link, Number.POSITIVE_INFINITY)}|Open in ${vendor}>`;
    return text === null || text.length > SLACK_SECTION ? null : { type: 'section', text: { type: 'mrkdwn', text } };
}

/** The characters that begin mentions, links and entities in Slack's markup, and what they are escaped as. */
const SLACK_ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** The text escaped for Slack's text objects, in at most `max` characters. It is never cut within an entity. */
function slackText(text: string, max: number): string {
    const escaped = text.replace(/[&<>]/g, (character) => SLACK_ENTITIES[character] as string);
    if (escaped.length <= max) {
        return escaped;
    }

    let cut = '';
    for (const character of text) {
        const next = SLACK_ENTITIES[character] ?? character;
        if (cut.length + next.length >= max) {
            break;
        }

        cut += next;
    }

    return `${cut}…`;
}

const TEAMS_TITLE = 300;
const TEAMS_TEXT = 3000;
/** Of a fact, which there may be ten of: its name, and what it says. */
const TEAMS_NAME = 100;
const TEAMS_FACT = 300;
/** Bytes of a link, which is not cut off: in some letters one of as many characters has three times as many. */
const TEAMS_LINK_BYTES = 2000;

/** A message of a Teams workflow ("When a Teams webhook request is received"): one Adaptive Card. */
export const teams: Format = {
    name: 'teams',
    contentType: JSON_TYPE,
    make(event, settings) {
        const content = cardOf(event, settings);
        const attachment = { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content };
        return { body: JSON.stringify({ type: 'message', attachments: [attachment] }) };
    },
};

/** A card of Adaptive Cards 1.2, which every client shows. Text blocks would interpret Markdown; the runs of a rich text block do not. */
function cardOf(event: FormatEvent, { vendor }: FormatSettings): Block {
    const summary = summaryOf(event);
    const link = summary.link !== null && Buffer.byteLength(summary.link) <= TEAMS_LINK_BYTES ? summary.link : null;
    const run = (text: string, max: number, looks: Block = {}): Block => ({ type: 'TextRun', text: truncated(text, max), ...looks });
    const paragraph = (...inlines: readonly Block[]): Block => ({ type: 'RichTextBlock', inlines });
    const facts = summary.facts.map(([label, value]) =>
        paragraph(run(`${truncated(label, TEAMS_NAME)}: `, TEAMS_FACT, { weight: 'Bolder' }), run(value, TEAMS_FACT)),
    );
    return {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.2',
        body: [
            paragraph(run(summary.title, TEAMS_TITLE, { weight: 'Bolder', size: 'Medium' })),
            ...(summary.text === null ? [] : [paragraph(run(summary.text, TEAMS_TEXT))]),
            ...facts,
            paragraph(run(footOf(event, summary), TEAMS_FACT, { size: 'Small', isSubtle: true })),
        ],
        ...(link !== null && { actions: [{ type: 'Action.OpenUrl', title: `Open in ${vendor}`, url: link }] }),
    };
}

function footOf({ kind, id }: FormatEvent, { time }: Summary): string {
    return `${kind} · ${time.toISOString()} · ${id}`;
}
