import type { Format, FormatEvent, FormatSettings } from './format.ts';
import { summaryOf } from './summary.ts';

/* The body of the event as it is, and inside a CloudEvent. */

/** The bytes of the event's body, unchanged. */
export const native: Format = {
    name: 'native',
    contentType: 'application/json; charset=UTF-8',
    make: ({ text }) => ({ body: text }),
};

/** The attributes of a [CloudEvent](https://github.com/cloudevents/spec), version 1.0.2, in the order in which they go out. */
interface CloudEventAttributes {
    readonly specversion: '1.0';
    readonly id: string;
    readonly source: string;
    readonly type: string;
    readonly time: string;
}

function attributesOf(event: FormatEvent, { vendor }: FormatSettings): CloudEventAttributes {
    return {
        specversion: '1.0',
        id: event.id,
        source: `/${vendor}/webhook-exporter`,
        type: event.kind,
        time: summaryOf(event).time.toISOString(),
    };
}

/** Structured content mode: one JSON document, the body under `data`. */
export const cloudevents: Format = {
    name: 'cloudevents',
    contentType: 'application/cloudevents+json; charset=utf-8',
    make(event, settings) {
        const attributes = JSON.stringify({ ...attributesOf(event, settings), datacontenttype: 'application/json' });
        // the body is JSON already: written again, it would cost twice, and could come out as other bytes
        return { body: `${attributes.slice(0, -1)},"data":${event.text}}` };
    },
};

/** Binary content mode: the body is that of the event, the attributes are headers. */
export const cloudeventsBinary: Format = {
    name: 'cloudevents-binary',
    // small letters: there are readers of CloudEvents that compare the whole text
    contentType: 'application/json; charset=utf-8',
    make: (event, settings) => ({
        headers: Object.entries(attributesOf(event, settings)).map(([name, value]) => [`ce-${name}`, value] as const),
        body: event.text,
    }),
};
