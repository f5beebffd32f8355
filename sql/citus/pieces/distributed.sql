    'distributed', true,
