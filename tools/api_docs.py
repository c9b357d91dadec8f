#!/usr/bin/env python3
"""Builds the API documentation of include/tuff with doxygen and checks that it says enough.

Fails on any warning of doxygen. With --complete also on a header, class or struct without a
description; on a public function of more than two parameters (options and those of a constructor
apart) without one of its own; and on one that neither has one nor stands in a section
("// ---- title") that says what its functions are.

Usage: api_docs.py [--complete] OUTPUT_FOLDER      HTML goes to OUTPUT_FOLDER/html
Exit codes: 0 done, 1 a warning or something undocumented, 77 no doxygen here (a skip for ctest).
"""
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77
MOST_PARAMETERS_BY_NAME_ALONE = 2


def build(output):
    settings = (ROOT / 'docs' / 'Doxyfile').read_text() + f'\nOUTPUT_DIRECTORY = {output}\n'
    run = subprocess.run(['doxygen', '-'], input=settings, cwd=ROOT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return run.returncode, run.stdout


def words(element):
    return '' if element is None else ''.join(element.itertext()).strip()


def described(element):
    return bool(words(element.find('briefdescription')) or words(element.find('detaileddescription')))


def place(element):
    where = element.find('location')
    return f'{where.get("file")}:{where.get("line")}' if where is not None else '?'


def function_fault(function, section):
    if function.get('prot') != 'public' or described(function):
        return None
    name = function.findtext('name')
    # Of constructors, destructors and assignment the class's text speaks.
    if not words(function.find('type')) or name == 'operator=':
        return None
    parameters = [p for p in function.findall('param')
                  if 'TensorOptions' not in words(p.find('type'))]
    if len(parameters) > MOST_PARAMETERS_BY_NAME_ALONE:
        return f'{name} has {len(parameters)} parameters and no description'
    if section.get('kind') != 'user-defined' and section.get('kind') != 'public-static-func':
        return None  # of a class whose own text covers it
    return None if section.findtext('header') else f'{name} has no description and no section'


def faults(compound):
    name = compound.findtext('compoundname')
    # An Options struct and a specialization belong to what they are of.
    part_of_another = name.endswith(('::Options', '>'))
    if compound.get('kind') in ('class', 'struct', 'file') and not described(compound):
        if compound.get('prot', 'public') == 'public' and not part_of_another:
            yield f'{place(compound)}: {name} has no description'
    if compound.get('kind') not in ('class', 'struct', 'namespace'):
        return
    for section in compound.iter('sectiondef'):
        for function in section.findall("memberdef[@kind='function']"):
            why = function_fault(function, section)
            if why:
                yield f'{place(function)}: {why}'


def undocumented(output):
    found = []
    for file in sorted((output / 'xml').glob('*.xml')):
        for compound in ElementTree.parse(file).getroot().findall('compounddef'):
            found += faults(compound)
    return found


def main():
    arguments = sys.argv[1:]
    complete = '--complete' in arguments
    arguments = [a for a in arguments if a != '--complete']
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which('doxygen'):
        print('skipped: doxygen is not installed (scripts/install-dependencies does)')
        return SKIPPED
    output = pathlib.Path(arguments[0]).resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    code, said = build(output)
    if code != 0 or said.strip():
        print(said or f'doxygen ended with {code}')
        return 1
    found = undocumented(output) if complete else []
    print('\n'.join(found) or f'{output}/html/index.html')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
