#!/usr/bin/env python3
"""Writes tests/data/chat_templates.json: short templates, and what jinja2 makes of them (null: it raises).

Usage: scripts/chat-template-values.py
The environment is that of scripts/template-cases. Needs Debian's python3-jinja2.
"""
import importlib.machinery
import importlib.util
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MESSAGES = [{"role": "system", "content": " Be <brief>. "}, {"role": "user", "content": "Grüße 'a' \"b\"\nend", "n": 3},
            {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"x": 1.5, "y": [True, None]}}]}]
TEMPLATES = r"""
{{ messages[0].content }}|{{ messages[1]['content'] }}|{{ messages[-1].role }}|{{ messages[9] is defined }}
{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ m.role }};{% endfor %}
{% for m in messages if m.role != 'user' %}{{ loop.index }}/{{ loop.length }} {{ m.role }} {% else %}none{% endfor %}
{% for m in [] %}x{% else %}none{% endfor %}{% for k, v in messages[1].items() %}{{ k }}={{ v }},{% endfor %}
{% set ns = namespace(n=0, found=false) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set x = 1 %}{% endfor %}{{ ns.n }}{{ x is defined }}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{{ loop is defined }}{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{% endfor %}{{ loop.index }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}
{% macro f(a, b=2, c=b) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=5) }} {{ f(b=7, a=0) }}{{ f() }}
{% macro g(x) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ g(1, 2, 3, z=4) }}
{% macro wrap(t) %}<{{ t }}>{{ caller(1) }}</{{ t }}>{% endmacro %}{% call(n) wrap('b') %}in {{ n }}{% endcall %}
{% macro deep(v) %}{% if v is mapping %}{ {%- for k, w in v|dictsort %}{{ k }}:{{ deep(w) }},{% endfor -%} }{% else %}{{ v }}{% endif %}{% endmacro %}{{ deep({'b': {'c': 1}, 'a': 2}) }}
{% set t %}  block {{ 1 + 1 }} {% endset %}[{{ t | trim }}]{% set u | upper %}low{% endset %}{{ u }}{% filter upper %}x{{ 'y' }}{% endfilter %}
{% set a, b = 1, 'two' %}{{ a }}{{ b }}{% with c = 3, d = 4 %}{{ c + d }}{% endwith %}
{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ -2 ** 2 }} {{ 1.0 }} {{ 1e20 }} {{ 1_000 }} {{ 0.1 + 0.2 }}
{{ 'a' + 'b' ~ 1 ~ none ~ true }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ (1, 2) + (3,) }} {{ [0] * 2 }}
{{ 1 < 2 < 3 }} {{ 3 > 2 == 2 }} {{ 'a' in 'abc' }} {{ 'x' not in ['y'] }} {{ 'role' in messages[0] }} {{ not 1 }} {{ 1 and 0 or 'z' }}
{{ 'yes' if messages else 'no' }} {{ 'x' if false }}|{{ (1 if true else 2) + 1 }}
{{ messages[1:] | length }} {{ messages[:-1] | length }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[1:4] }} {{ 'Grüße'[2] }} {{ [1,2,3,4][::2] }} {{ [1,2,3][-2:] }} {{ [3,2,1][5:] }}
{{ messages[1] | tojson }} {{ messages[2] | tojson(indent=2) }} {{ 'ü"\n' | tojson }} {{ 'ü🦊' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': [] } | tojson(sort_keys=true, separators=(',', ':')) }}
{{ messages[2] }} {{ messages[1].content | string }} {{ ["it's", 'a "q"', 'a\\b\n'] }} {{ none }} {{ true }} {{ (1,) }} {{ {} }} {{ [1.0, 1e-7, 1e16] }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a-b-c'.split('-', 1) }} {{ 'a-b-c'.rsplit('-', 1) }} {{ 'x\ny'.splitlines() }} {{ 'a b c'.split(none, 1) }}
[{{ '  x '.strip() }}][{{ 'xxaxx'.strip('x') }}][{{ '  x '.lstrip() }}][{{ '  x '.rstrip() }}][{{ '\n\nabc\n'.rstrip('\n') }}]
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.find('c') }} {{ 'abab'.count('ab') }}
{{ 'hello world'.title() }} {{ 'hELLO'.capitalize() }} {{ 'Straße' | upper }} {{ 'ÄÖ' | lower }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'AB'.isupper() }}
{{ '{} and {}'.format(1, 'b') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '%s is %d, %.2f' % ('x', 3, 1.005) }} {{ '%5s|%-5s|' % ('a', 'b') }} {{ '{{}}'.format() }}
{{ messages[1].get('n') }} {{ messages[1].get('zz') }} {{ messages[1].get('zz', 7) }} {{ messages[1].keys() | list }} {{ messages[1].values() | list }}
{{ messages | map(attribute='role') | join(', ') }} {{ [1, 2] | map('string') | list }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('n') | map(attribute='role') | list }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ messages | sort(attribute='role') | map(attribute='role') | list }} {{ [1, 2, 1] | unique | list }} {{ [4, 2] | min }} {{ [4, 2] | max }} {{ [1, 2] | sum }}
{{ {'b': 2, 'a': 1} | dictsort }} {{ {'b': 2} | items | list }} {{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [1, 2] | reverse | list }} {{ 'ab' | reverse }} {{ 'ab' | list }}
{{ x | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | d(1, boolean=true) }} {{ '3' | int + 1 }} {{ 'z' | int }} {{ 3.9 | int }} {{ '2.5' | float }} {{ 2.5 | round }} {{ -3 | abs }}
{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb' | indent(2, first=true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}
{{ "it's " | safe + '<b>' }} {{ '<' + 'x' | safe }} {{ ('<' | safe) ~ '<' }} {{ '<&>"' | escape }}
{{ x is defined }} {{ x is undefined }} {{ none is none }} {{ 'a' is string }} {{ {} is mapping }} {{ [] is iterable }} {{ 'a' is sequence }} {{ 1 is number }} {{ true is boolean }} {{ 1 is integer }} {{ 1.5 is float }} {{ true is true }} {{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ 1 is not none }} {{ 2 is in [1, 2] }} {{ 'a' is eq 'a' }}
{{ x }}|{{ x ~ 'a' }}|{% for i in x %}{% endfor %}{{ x | length }}{{ x == y }}{{ 'a' in x }}
{# comment #}a {#- stripped -#} b {% raw %}{{ raw }}{% endraw %} {{ '{{' }}
  {% if true %}  
  indented
    {% endif %}  
tail {%- if true -%}   joined   {%- endif %}  {{- 'x' -}}   y
{%+ if true %}kept{% endif +%}

after
{{ "\u00fc\x41\t\101" }}{{ 'a' 'b' }}{{ "a\
b" }}{{ 'line
break' }}
{% generation %}made{% endgeneration %}{{ dict(a=1) }}{{ range(3) | list }}{{ range(4, 0, -2) | list }}
{{ raise_exception('no!') }}
{{ x.y }}
{{ x + 1 }}
{{ messages.append(1) }}
{{ 1 / 0 }}
{{ [1] | tojson(1, 2, 3, 4, 5) }}
{{ 'a' + 1 }}
{{ 1 | nofilter }}
{{ 1 is notest }}
{{ x() }}
{{ none.a.b }}
{{ 'a' < 1 }}
{% for i in 3 %}{% endfor %}
{% set messages.x = 1 %}
{% if %}{% endif %}
{% if true %}
{{ 1
{% nothing %}
{{ }}
{{ 'a }}
{% for x in messages %}{% endif %}
{{ [1, 2 }}
{{ f(a=1, 2) }}
{% break %}
{{ strftime_now('%Y-%m-%d') | length }}{{ add_generation_prompt }}{{ bos_token }}{{ tools }}{{ extra.a }}
"""


def templates():
    """One a line; lines that begin where one of several lines stands go with it."""
    lines = TEMPLATES.strip("\n").split("\n")
    joined, at = [], 0
    several = {"  {% if true %}  ": 4, "{%+ if true %}kept{% endif +%}": 3, r'{{ "\u00fc\x41\t\101" }}{{ ' + "'a' 'b' }}{{ \"a\\": 3}
    while at < len(lines):
        n = several.get(lines[at], 1)
        joined.append("\n".join(lines[at:at + n]))
        at += n
    return joined


def main():
    loader = importlib.machinery.SourceFileLoader("cases", str(ROOT / "scripts/template-cases"))
    cases = importlib.util.module_from_spec(importlib.util.spec_from_loader("cases", loader))
    loader.exec_module(cases)
    env, rows = cases.environment(), []
    for t in templates():
        text, _ = cases.outcome(lambda t=t: env.from_string(t).render(
            messages=MESSAGES, tools=None, documents=None, add_generation_prompt=True, bos_token="<s>", eos_token="</s>",
            extra={"a": 1}))
        rows.append({"template": t, "text": text})
    lines = ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows)
    (ROOT / "tests/data/chat_templates.json").write_text(
        f'{{"messages": {json.dumps(MESSAGES, ensure_ascii=False)},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
